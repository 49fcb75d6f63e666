#!/bin/sh
# Compares "ingot create -q int4" with "mlx_lm convert -q" and with copying, on a synthetic bf16 checkpoint; see convert.py.
# Usage: bench/convert.sh INGOT [--gigabytes N] [--runs N].
set -eu

here=$(cd "$(dirname "$0")" && pwd)
venv=$("$here/mlx-venv.sh")
exec "$venv/bin/python" "$here/convert.py" "$@"
