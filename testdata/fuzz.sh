#!/bin/sh
# Runs every fuzz target of packages for a while: fuzz.sh TIME PACKAGE..., with patterns such as ./... too. The output of a
# target that fails is printed.
set -eu

fuzz_time=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Go 1.26 may report the end of the time as a failure of the target: https://go.dev/issue/75804. What a target found is always
# written down.
only_time_ended() {
	grep -qx ' *context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log"
}

packages=$(go list "$@")
for package in $packages; do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz'); do
		if ! go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzz_time" -fuzzminimizetime 10x "$package" >"$log" 2>&1 && ! only_time_ended; then
			cat "$log"
			exit 1
		fi
		echo "$package $target: $(grep 'execs:' "$log" | tail -n 1)"
	done
done
