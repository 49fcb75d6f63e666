#!/bin/sh
# Makes .cache/clients-venv at the top of the repository, with what requirements.txt pins: the official clients of the APIs that
# `ingot serve` speaks, for TestClients in cmd, and that of the hub, for registry/hub. Needs Python 3.11 or later.
# Usage: testdata/clients/setup.sh [PYTHON]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
venv=$here/../../.cache/clients-venv
stamp=$venv/requirements.txt

if [ -f "$stamp" ] && cmp -s "$here/requirements.txt" "$stamp"; then
	exit 0
fi
rm -rf "$venv"
"${1:-python3}" -m venv "$venv"
# --no-deps: the list is complete, which the next line checks. --no-compile: Python compiles what is imported.
"$venv/bin/python" -m pip install --no-deps --no-compile --disable-pip-version-check --quiet -r "$here/requirements.txt"
"$venv/bin/python" -m pip check --disable-pip-version-check
cp "$here/requirements.txt" "$stamp"
