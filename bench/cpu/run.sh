#!/bin/sh
# Times ingot on the CPU beside llama.cpp and mlx-lm; see run.py, which takes the arguments. Needs Go, Python 3.10 or later
# with venv, cmake and a C++ compiler: llama.cpp is compiled for this machine, once, into a virtual environment in the
# user's cache. BENCH_JOBS is the number of compilers at a time (default: one per processor). --packages-only and --peers-only end
# after llama.cpp's library and mlx-lm, and after llama-server.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
venv=${XDG_CACHE_HOME:-$HOME/.cache}/ingot/bench-cpu-venv
stamp=$venv/bench-requirements.txt

if ! { [ -f "$stamp" ] && cmp -s "$here/requirements.txt" "$stamp"; }; then
	echo "building llama.cpp and installing mlx-lm into $venv (the first time: 10 to 30 minutes)" >&2
	rm -rf "$venv"
	begun=$(date +%s)
	"${PYTHON:-python3}" -m venv "$venv"
	# GGML_NATIVE: every instruction of this processor. LLAVA_BUILD is about pictures.
	CMAKE_ARGS="-DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAVA_BUILD=OFF" CMAKE_BUILD_PARALLEL_LEVEL=${BENCH_JOBS:-$(getconf _NPROCESSORS_ONLN)} \
		"$venv/bin/python" -m pip install --disable-pip-version-check --quiet -r "$here/requirements.txt"
	echo $(($(date +%s) - begun)) >"$venv/bench-seconds"
	cp "$here/requirements.txt" "$stamp"
fi
if [ "${1:-}" = --packages-only ]; then
	exit 0
fi
# llama-server is not part of the package, but its source is: it serves with the same llama.cpp.
if ! [ -x "$venv/bin/llama-server" ]; then
	echo "building llama-server (10 to 20 minutes)" >&2
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	"$venv/bin/python" -m pip download --disable-pip-version-check --quiet --no-deps --no-binary :all: -d "$work" \
		"$(grep '^llama-cpp-python==' "$here/requirements.txt")"
	tar -xzf "$work"/llama_cpp_python-*.tar.gz -C "$work"
	cmake -S "$work"/llama_cpp_python-*/vendor/llama.cpp -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON \
		-DBUILD_SHARED_LIBS=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF \
		-DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF >&2
	cmake --build "$work/build" -j "${BENCH_JOBS:-$(getconf _NPROCESSORS_ONLN)}" --target llama-server >&2
	mv "$work/build/bin/llama-server" "$venv/bin/llama-server.part"
	mv "$venv/bin/llama-server.part" "$venv/bin/llama-server"
	rm -rf "$work"
	trap - EXIT
fi
if [ "${1:-}" = --peers-only ]; then
	exit 0
fi
exec "$venv/bin/python" "$here/run.py" "$@"
