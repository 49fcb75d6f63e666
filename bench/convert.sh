#!/bin/sh
# Compares "ingot create -q int4" with "mlx_lm convert -q" and with copying, on a synthetic bf16 checkpoint; see convert.py.
# Usage: bench/convert.sh INGOT [--gigabytes N] [--runs N]. Needs Python 3.10 or later with venv; mlx-lm is installed into a
# virtual environment in the user's cache.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
venv=${XDG_CACHE_HOME:-$HOME/.cache}/ingot/bench-venv
stamp=$venv/bench-requirements.txt

if ! { [ -f "$stamp" ] && cmp -s "$here/requirements.txt" "$stamp"; }; then
	echo "installing mlx-lm into $venv" >&2
	rm -rf "$venv"
	"${PYTHON:-python3}" -m venv "$venv"
	"$venv/bin/python" -m pip install --disable-pip-version-check --quiet -r "$here/requirements.txt"
	cp "$here/requirements.txt" "$stamp"
fi
exec "$venv/bin/python" "$here/convert.py" "$@"
