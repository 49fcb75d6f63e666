#!/usr/bin/env bash
# Runs a command with its temporary files in memory, below /dev/shm, if there is room and TMPDIR is not set. Tests create
# and remove tens of thousands of small files. For each new one, ext4 scans the inodes that were removed in the last
# seconds (recently_deleted in fs/ext4/ialloc.c), which took longer than the tests.
# The folder has the same name each time, because Go's cache of test results distinguishes values of TMPDIR. A second
# run beside the first uses the disk.
# Usage: internal/limits/runtest/in-memory.sh COMMAND [ARG...]
set -euo pipefail

need=$((3 << 20)) # KiB; tests use up to 1 GiB at a time
free=$(df -kP /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }') || true
available=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo 2>/dev/null) || true
if [ -n "${TMPDIR:-}" ] || [ "${free:-0}" -lt $need ] || [ "${available:-0}" -lt $((3 * need)) ]; then
	exec "$@"
fi

dir=/dev/shm/ingot-test-$(id -u)-$(pwd | cksum | cut -d' ' -f1)
exec 9>"$dir.lock"
if ! flock -n 9; then
	exec "$@" 9>&-
fi
rm -rf "$dir"
mkdir -m 700 "$dir"
trap 'rm -rf "$dir"' EXIT
printf '#!/bin/sh\n' >"$dir/probe"
chmod +x "$dir/probe"
if "$dir/probe" 2>/dev/null; then # else it is mounted noexec
	export TMPDIR="$dir"
fi
"$@" 9>&-
