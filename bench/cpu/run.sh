#!/bin/sh
# Times ingot on the CPU beside llama.cpp and mlx-lm; see run.py, which takes the arguments. Needs Go, Python 3.10 or later
# with venv, cmake and a C++ compiler: llama.cpp is compiled for this machine, once, into a virtual environment in the
# user's cache. BENCH_JOBS is the number of compilers at a time (default: one per processor).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
venv=${XDG_CACHE_HOME:-$HOME/.cache}/ingot/bench-cpu-venv
stamp=$venv/bench-requirements.txt

if ! { [ -f "$stamp" ] && cmp -s "$here/requirements.txt" "$stamp"; }; then
	echo "building llama.cpp and installing mlx-lm into $venv (the first time: 10 to 30 minutes)" >&2
	rm -rf "$venv"
	"${PYTHON:-python3}" -m venv "$venv"
	# GGML_NATIVE: every instruction of this processor. LLAVA_BUILD is about pictures.
	CMAKE_ARGS="-DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAVA_BUILD=OFF" CMAKE_BUILD_PARALLEL_LEVEL=${BENCH_JOBS:-$(getconf _NPROCESSORS_ONLN)} \
		"$venv/bin/python" -m pip install --disable-pip-version-check --quiet -r "$here/requirements.txt"
	cp "$here/requirements.txt" "$stamp"
fi
if [ "${1:-}" = --peers-only ]; then
	exit 0
fi
exec "$venv/bin/python" "$here/run.py" "$@"
