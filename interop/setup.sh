#!/bin/sh
# Installs what `make test-interop` and bench/transfer need: Debian's docker-registry, skopeo, chromium and strace, and
# crane and a small oras-go program (into .bin). With --full, it also installs nginx, distribution 3, the oras CLI, Docker
# Model Runner's tool and cosign (into the user's cache: their builds take minutes), the Python environments of
# testdata/gen and bench, the latter with mlx-lm, lm-evaluation-harness, the clients of structured output, Ollama's
# JavaScript package, coding clients and a model for them (Node 20 or later has to be there), and Open WebUI (Python 3.11
# or 3.12 has to be there). The clients take 4 GB.
# Usage: interop/setup.sh [--full]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
bin=$here/.bin
cosign_version=3.1.3
distribution_version=3.1.2
oras_version=1.3.6
model_runner_version=1.0.10
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ingot/interop
full=
[ "${1:-}" != --full ] || full=1
mkdir -p "$bin"

missing=
for tool in docker-registry skopeo strace ${full:+nginx}; do
	command -v "$tool" > /dev/null || missing="$missing $tool"
done
command -v chromium > /dev/null || missing="$missing chromium fonts-dejavu-core"
if [ -n "$missing" ]; then
	install="apt-get install -y --no-install-recommends$missing"
	if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
		echo "interop: install Debian's packages first: $install" >&2
		exit 1
	fi
	# Under systemd the package starts a registry on port 5000. The tests use neither it nor its files.
	apt-get update -qq
	# shellcheck disable=SC2086 # a list of words
	DEBIAN_FRONTEND=noninteractive $install > "$bin/apt.log" 2>&1 || { cat "$bin/apt.log" >&2; exit 1; }
fi

cd "$here"
${GO:-go} build -o "$bin/crane" github.com/google/go-containerregistry/cmd/crane
${GO:-go} build -o "$bin/oras" ./oras

[ "$full" ] || exit 0

# built NAME VERSION PACKAGE [PROGRAM]: builds a program with the versions that its own module selects.
built() {
	folder=$cache/$1-$2
	if [ ! -x "$folder/${4:-$1}" ]; then
		echo "building $1 $2 (minutes, the first time)" >&2
		mkdir -p "$folder"
		(cd "$folder" && GOBIN=$folder ${GO:-go} install "$3@v$2")
	fi
	ln -sf "$folder/${4:-$1}" "$bin/$1"
}
built cosign "$cosign_version" github.com/sigstore/cosign/v3/cmd/cosign
built registry "$distribution_version" github.com/distribution/distribution/v3/cmd/registry
built oras-cli "$oras_version" oras.land/oras/cmd/oras oras

# Docker Model Runner's module replaces another, so only a copy of it can be built.
mdltool=$cache/mdltool-$model_runner_version
if [ ! -x "$mdltool/mdltool" ]; then
	echo "building mdltool $model_runner_version (minutes, the first time)" >&2
	module=github.com/docker/model-runner@v$model_runner_version
	source=$(${GO:-go} mod download -json "$module" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
	rm -rf "$mdltool"
	mkdir -p "$mdltool"
	cp -R "$source" "$mdltool/source"
	chmod -R u+w "$mdltool/source"
	(cd "$mdltool/source" && GOWORK=off ${GO:-go} build -o ../mdltool ./cmd/mdltool)
	rm -r "$mdltool/source"
fi
ln -sf "$mdltool/mdltool" "$bin/mdltool"
../testdata/gen/setup.sh
../bench/mlx-venv.sh > /dev/null

# The clients of structured output, and Ollama's JavaScript package.
clients=$bin/structured
mkdir -p "$clients" "$bin/ollama"
cp structured/*.mjs structured/*.py structured/package.json "$clients"
cp ollama/*.mjs ollama/package.json "$bin/ollama"
command -v node > /dev/null || { echo "interop: install node 20 or later first" >&2; exit 1; }
(cd "$clients" && npm install --no-audit --no-fund --silent)
(cd "$bin/ollama" && npm install --no-audit --no-fund --silent)
for client in instructor outlines pydantic-ai langchain; do
	[ -x "$clients/$client/bin/python" ] || python3 -m venv "$clients/$client"
	"$clients/$client/bin/pip" install -q --disable-pip-version-check -r "structured/$client.txt"
done

# lm-evaluation-harness, with the torch and transformers of testdata/gen.
[ -x "$bin/evaluation/bin/python" ] || python3 -m venv "$bin/evaluation"
packages=$("$bin/evaluation/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
../.cache/gen-venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' > "$packages/gen.pth"
"$bin/evaluation/bin/pip" install -q --disable-pip-version-check -r evaluation/requirements.txt

# Coding clients, and Open WebUI.
agents=$bin/agents
mkdir -p "$agents"
cp agents/package.json "$agents"
(cd "$agents" && npm install --no-audit --no-fund --silent)
for client in aider open-webui; do
	[ -x "$agents/$client/bin/python" ] || python3 -m venv "$agents/$client"
	python=$agents/$client/bin/python
	if [ $client = open-webui ]; then
		# It requires PyTorch, 5 GB, for models of its own. They are not used, and it starts without: this satisfies pip.
		torch=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch-99.0.dist-info
		mkdir -p "$torch"
		printf 'Metadata-Version: 2.1\nName: torch\nVersion: 99.0\n' > "$torch/METADATA"
	fi
	"$python" -m pip install -q --disable-pip-version-check -r "agents/$client.txt"
done
../testdata/real/fetch.sh qwen2.5-coder-0.5b > /dev/null
