#!/bin/sh
# Prints a folder with llama.cpp's converter. The first time, it downloads the source of llama-cpp-python, which has all of
# llama.cpp, with pip (77 MB), and keeps the converter in the user's cache. The package is pinned by its SHA-256.
# Usage: testdata/real/fetch_converter.sh [PYTHON]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
python=${1:-python3}
dir=${XDG_CACHE_HOME:-$HOME/.cache}/ingot/real/converter-0.3.36

if ! [ -d "$dir" ]; then
	mkdir -p "${dir%/*}"
	temp=$(mktemp -d "$dir.XXXXXX")
	trap 'rm -rf "$temp"' EXIT
	trap 'exit 1' HUP INT TERM
	"$python" -m pip download --no-deps --no-binary :all: --require-hashes --disable-pip-version-check --quiet --retries 2 \
		--dest "$temp" -r "$here/converter.txt" >&2 || {
		echo "fetch_converter.sh: pip cannot download the package of $here/converter.txt (77 MB):" \
			"the first run needs a network" >&2
		exit 1
	}
	tar -xzf "$temp"/llama_cpp_python-*.tar.gz -C "$temp" --strip-components 3 --wildcards \
		'*/vendor/llama.cpp/conversion' '*/vendor/llama.cpp/gguf-py'
	rm "$temp"/llama_cpp_python-*.tar.gz
	mv "$temp" "$dir"
	trap - EXIT HUP INT TERM
fi
echo "$dir"
