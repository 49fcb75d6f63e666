#!/bin/sh
# Writes the built-in texts text/prose.txt and text/code.txt from the project's documentation and sources. The others are
# written by hand. Run it in this folder; calibrations with other texts have other digests, so run it seldom.
set -eu
cd "$(dirname "$0")/../.."
out=runtime/calibrate/text

# join SIZE FILE... prints the beginnings of files, with separators.
join() {
	size=$1
	shift
	first=1
	for f in "$@"; do
		[ -n "$first" ] || printf '\n=====\n'
		first=
		head -c "$size" "$f" | iconv -c -f utf-8 -t utf-8
	done
}

join 9000 docs/design/overview.md docs/run.md docs/design/cpu.md docs/registries.md docs/design/grammar.md docs/serve.md \
	docs/design/images.md docs/structured-output.md docs/design/tests.md docs/security.md docs/drafts.md docs/gguf.md \
	>$out/prose.txt
join 7000 grammar/lark/compile.go grammar/lark/lexer.go grammar/lark/parser.go tokenizer/tokenizer.go tokenizer/load.go \
	manifest/store/blob.go chat/jinja/compile.go testdata/gen/fixtures.py bench/pair.py mlx/bridge/src/core/*.cc \
	registry/p*.go \
	>$out/code.txt
