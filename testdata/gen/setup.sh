#!/bin/sh
# Makes .cache/gen-venv at the top of the repository, with what requirements.txt pins. Needs Python 3.11 or later.
# Usage: testdata/gen/setup.sh [PYTHON]; then run the scripts with .cache/gen-venv/bin/python.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
venv=$here/../../.cache/gen-venv
stamp=$venv/requirements.txt

if [ -f "$stamp" ] && cmp -s "$here/requirements.txt" "$stamp"; then
	echo "up to date: $venv"
	exit 0
fi
# An environment that works only gets what changed: torch alone is gigabytes.
if ! "$venv/bin/python" -m pip --version > /dev/null 2>&1; then
	rm -rf "$venv"
	"${1:-python3}" -m venv "$venv"
fi
# --no-deps: the list is complete, and torch's own requirements would add compilers and headers for GPUs.
"$venv/bin/python" -m pip install --no-deps --disable-pip-version-check --quiet -r "$here/requirements.txt"
"$venv/bin/python" -c 'import torch, transformers; print("torch", torch.__version__, "transformers", transformers.__version__)'
cp "$here/requirements.txt" "$stamp"
