#!/bin/sh
# Makes a virtual environment with mlx-lm, as requirements.txt pins it, in the user's cache, and prints its path. Needs Python 3.10
# or later with venv.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
venv=${XDG_CACHE_HOME:-$HOME/.cache}/ingot/bench-venv
stamp=$venv/bench-requirements.txt

if ! { [ -f "$stamp" ] && cmp -s "$here/requirements.txt" "$stamp"; }; then
	echo "installing mlx-lm into $venv" >&2
	rm -rf "$venv"
	"${PYTHON:-python3}" -m venv "$venv"
	"$venv/bin/python" -m pip install --disable-pip-version-check --quiet -r "$here/requirements.txt" >&2
	cp "$here/requirements.txt" "$stamp"
fi
echo "$venv"
