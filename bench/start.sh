#!/bin/sh
# Times cold starts of ingot, beside llama.cpp if bench/cpu/run.sh has installed it; see bench/start.
# Usage: bench/start.sh INGOT PROGRAM RESULTS [-rounds N], where PROGRAM is bench/start
set -eu

here=$(cd "$(dirname "$0")" && pwd)
ingot=$1 program=$2 results=$3
shift 3
gguf=$("$here/../testdata/real/fetch.sh" smollm2 "${PYTHON:-python3}")
tokenizers=$("$here/../testdata/real/fetch_tokenizers.sh")

venv=${XDG_CACHE_HOME:-$HOME/.cache}/ingot/bench-cpu-venv
for site in "$venv"/lib/python3*/site-packages; do
	if [ -f "$site/include/llama.h" ]; then
		${CC:-cc} -O2 -o "$program-llama" "$here/start/peer/llama.c" -I"$site/include" -L"$site/lib" -Wl,-rpath,"$site/lib" -lllama -lggml-base -lggml
		set -- "$@" -llama "$program-llama"
	else
		echo "without llama.cpp: bench/cpu/run.sh --peers-only installs it" >&2
	fi
done
exec "$program" "$@" -gguf "$gguf" "$ingot" "$results" "$tokenizers"/tokenizer-*/models
