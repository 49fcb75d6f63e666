#!/bin/sh
# Measures push and pull next to crane, skopeo and oras-go's copy; see transfer/main.go. interop/setup.sh installs the peers.
# Usage: bench/transfer.sh INGOT BENCH [flags of BENCH]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
ingot=$(realpath "$1")
bench=$2
shift 2
"$here/../interop/setup.sh"
exec "$bench" -ingot "$ingot" -crane "$here/../interop/.bin/crane" -oras "$here/../interop/.bin/oras" \
	-skopeo "$(command -v skopeo)" -registry "$(command -v docker-registry)" -out "$here/results/transfer.json" "$@"
