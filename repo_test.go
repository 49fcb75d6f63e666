// Package ingot_test holds the rules of this repository.
package ingot_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ingotml/ingot"

// arrows lists what each room may import beside packages below itself and internal/limits. docs/design/overview.md has
// the same table.
var arrows = map[string][]string{
	"cmd": {"*"},
	"server": {"runtime", "convert", "registry", "chat", "prompt", "manifest", "modelfile", "server/pdf",
		"server/batches"},
	// An API depends on the server's core and on no other API.
	"server/ollama": {
		"server", "runtime", "convert", "registry", "chat", "prompt", "manifest", "modelfile", "quantize",
	},
	"server/openai":    {"server", "grammar", "runtime", "chat", "prompt", "manifest", "modelfile", "server/pdf"},
	"server/anthropic": {"server", "runtime", "chat", "prompt", "manifest", "modelfile", "server/pdf"},
	"server/offline":   {"server", "server/batches", "runtime", "manifest", "internal/atomicfile"},
	"server/batches":   {},
	"server/all":       {"server", "server/ollama", "server/openai", "server/anthropic", "server/offline"},
	"runtime": {
		"models", "cache", "mlx", "internal/child", "manifest", "modelfile", "tokenizer", "grammar", "vision", "arch",
		"quantize", "safetensors",
	},
	"models": {"arch", "cache", "mlx"},
	"cache":  {"mlx"},
	"mlx":    {"internal/child"},
	"worker": {"runtime", "models", "manifest", "internal/child", "internal/loopback"},
	"convert": {
		"arch", "quantize", "manifest", "modelfile", "tokenizer", "chat", "safetensors", "internal/atomicfile", "vision",
	},
	"registry":            {"manifest", "internal/child", "internal/atomicfile"},
	"internal/launch":     {"internal/atomicfile"},
	"arch":                {"quantize", "safetensors"},
	"quantize":            {},
	"manifest":            {"chat", "modelfile", "quantize", "safetensors", "internal/atomicfile"},
	"modelfile":           {},
	"safetensors":         {},
	"tokenizer":           {"internal/usercache", "internal/atomicfile"},
	"chat":                {},
	"prompt":              {"chat", "manifest", "runtime"},
	"grammar":             {},
	"vision":              {},
	"server/pdf":          {},
	"internal/limits":     {},
	"internal/child":      {},
	"internal/usercache":  {},
	"internal/atomicfile": {},
	"internal/loopback":   {},
}

// inside lists what each package of a room may import from its own room. A room without packages here is free.
// docs/design/runtime.md has the same table.
var inside = map[string][]string{
	"runtime":             {},
	"runtime/quality":     {},
	"runtime/embed":       {"runtime"},
	"runtime/constraint":  {"runtime"},
	"runtime/sample":      {"runtime"},
	"runtime/fit":         {"runtime"},
	"runtime/divide":      {"runtime", "runtime/fit"},
	"runtime/speed":       {"runtime", "runtime/load", "runtime/sample"},
	"runtime/processor":   {"runtime", "runtime/embed", "runtime/fit"},
	"runtime/pictures":    {"runtime", "runtime/processor"},
	"runtime/load":        {"runtime", "runtime/processor", "runtime/pictures"},
	"runtime/draft":       {"runtime", "runtime/load", "runtime/sample"},
	"runtime/ranks":       {"runtime", "runtime/draft", "runtime/load", "runtime/sample"},
	"runtime/pool":        {"runtime"},
	"runtime/runner":      {"runtime", "runtime/internal/stream"},
	"runtime/runtimetest": {"runtime", "runtime/quality"},
	"runtime/batch": {
		"runtime", "runtime/constraint", "runtime/draft", "runtime/embed", "runtime/load", "runtime/pictures",
		"runtime/processor", "runtime/ranks", "runtime/sample", "runtime/internal/stream",
	},
	"runtime/verify": {
		"runtime", "runtime/batch", "runtime/load", "runtime/pictures", "runtime/processor", "runtime/quality",
		"runtime/scores",
	},
	"runtime/measure": {
		"runtime", "runtime/batch", "runtime/load", "runtime/processor", "runtime/quality", "runtime/scores",
		"runtime/verify",
	},
	"runtime/scores":          {},
	"runtime/certificate":     {"runtime/quality"},
	"runtime/calibrate":       {"runtime/load", "runtime/processor"},
	"runtime/internal/stream": {},
	"arch":                    {"arch/config", "arch/gguf", "arch/precision", "arch/table"},
	"arch/config":             {"arch/decoder", "arch/precision", "arch/table"},
	"arch/decoder":            {},
	"arch/gguf":               {"arch/config", "arch/table"},
	"arch/precision":          {"arch/table"},
	"arch/table":              {},
	"arch/types": {
		"arch", "arch/config", "arch/decoder", "arch/gguf", "arch/precision", "arch/table",
	},
	"worker":        {"worker/shards", "worker/tunnel"},
	"worker/shards": {},
	"worker/tunnel": {},
	"manifest":      {"manifest/blob"},
	"registry": {
		"registry/address", "registry/choose", "registry/fetch", "registry/waiting", "registry/redact", "registry/remote",
		"registry/resume", "registry/sendfile", "registry/settings", "registry/sigstore", "registry/verdict",
	},
	"registry/attest": {"registry", "registry/remote", "registry/signed", "registry/sigstore"},
	"registry/remote": {
		"registry/address", "registry/credentials", "registry/waiting", "registry/redact", "registry/sendfile",
		"registry/settings", "registry/verdict",
	},
	"registry/waiting":     {},
	"registry/fetch":        {"registry/waiting", "registry/redact", "registry/remote"},
	"registry/settings":     {"registry/address"},
	"registry/sendfile":     {},
	"registry/address":      {"registry/redact"},
	"registry/credentials":  {"registry/redact"},
	"registry/redact":       {},
	"registry/resume":       {},
	"registry/signed":       {"registry/address", "registry/redact", "registry/remote", "registry/sigstore"},
	"registry/sigstore":     {},
	"registry/registrytest": {},
	"registry/choose":       {"registry/redact", "registry/remote"},
	"registry/layout":       {"registry", "registry/choose", "registry/remote"},
	"registry/audit":        {"registry", "registry/remote"},
	"registry/alltags":      {"registry", "registry/browse", "registry/layout", "registry/remote"},
	"registry/hub": {
		"registry/address", "registry/waiting", "registry/redact", "registry/remote", "registry/settings",
		"registry/verdict", "registry/hub/readahead",
	},
	"registry/verdict":             {},
	"registry/hub/readahead":       {},
	"registry/hub/hubtest":         {},
	"manifest/blob":                {},
	"manifest/verified":            {},
	"manifest/ollama":              {"manifest", "manifest/blob"},
	"manifest/ollama/ollamatest":   {},
	"manifest/encoding":            {"manifest", "manifest/foreign", "manifest/ollama"},
	"manifest/foreign":             {"manifest", "manifest/blob", "manifest/ollama"},
	"manifest/foreign/foreigntest": {},
	"manifest/unpack":              {"manifest", "manifest/foreign", "manifest/store/disk"},
	"registry/browse":              {"registry", "registry/redact", "registry/remote", "registry/verdict"},
	"manifest/ollama/exchange": {
		"manifest", "manifest/encoding", "manifest/foreign", "manifest/ollama", "manifest/store", "manifest/store/disk",
	},
	"manifest/store": {
		"manifest", "manifest/encoding", "manifest/foreign", "manifest/ollama", "manifest/store/disk",
		"manifest/store/index", "manifest/store/lock", "manifest/verified",
	},
	"manifest/store/disk":    {"manifest"},
	"manifest/store/index":   {"manifest"},
	"manifest/store/lock":    {"manifest", "manifest/store/disk"},
	"manifest/store/ingest":  {"manifest", "manifest/store", "manifest/store/disk", "manifest/store/lock"},
	"manifest/store/collect": {"manifest", "manifest/store", "manifest/store/index", "manifest/store/ingest"},
	"manifest/store/fsck": {
		"manifest", "manifest/store", "manifest/store/disk", "manifest/store/index", "manifest/store/ingest",
		"manifest/store/lock",
	},
	"manifest/statistics": {"manifest", "manifest/store"},
	"manifest/settings":   {"manifest", "manifest/store"},
	"manifest/store/storetest": {
		"manifest", "manifest/ollama", "manifest/store", "manifest/store/collect", "manifest/store/fsck",
	},

	"tokenizer": {
		"tokenizer/chars", "tokenizer/decode", "tokenizer/encode", "tokenizer/fault", "tokenizer/jsonfile",
		"tokenizer/normalize", "tokenizer/pretokenize", "tokenizer/sentencepiece", "tokenizer/trie",
	},
	"tokenizer/compiled": {"tokenizer", "internal/usercache", "internal/atomicfile"},
	"tokenizer/infill":   {"tokenizer"},
	"tokenizer/chars":    {},
	"tokenizer/decode": {
		"tokenizer/chars", "tokenizer/jsonfile", "tokenizer/normalize", "tokenizer/pattern", "tokenizer/pretokenize",
		"tokenizer/sentencepiece",
	},
	"tokenizer/encode": {
		"tokenizer/chars", "tokenizer/fault", "tokenizer/jsonfile", "tokenizer/sentencepiece", "tokenizer/trie",
	},
	"tokenizer/fault":    {"tokenizer/chars"},
	"tokenizer/jsonfile": {"tokenizer/fault"},
	"tokenizer/normalize": {
		"tokenizer/chars", "tokenizer/fault", "tokenizer/jsonfile", "tokenizer/pattern", "tokenizer/sentencepiece",
		"tokenizer/trie",
	},
	"tokenizer/pattern":       {"tokenizer/chars", "tokenizer/fault", "tokenizer/jsonfile"},
	"tokenizer/pretokenize":   {"tokenizer/chars", "tokenizer/fault", "tokenizer/jsonfile", "tokenizer/pattern"},
	"tokenizer/sentencepiece": {"tokenizer/chars", "tokenizer/fault", "tokenizer/jsonfile", "tokenizer/trie"},
	"tokenizer/tokenizertest": {},
	"tokenizer/trie":          {},

	"grammar": {
		"grammar/automaton", "grammar/ebnf", "grammar/expr", "grammar/instance", "grammar/jsontext", "grammar/lark",
		"grammar/program", "grammar/refs", "grammar/regex", "grammar/schema", "grammar/tags", "grammar/vocabulary",
	},
	"grammar/automaton": {
		"grammar/expr", "grammar/instance", "grammar/items", "grammar/places", "grammar/program", "grammar/trie",
		"grammar/vocabulary",
	},
	"grammar/dfa":         {"grammar/expr", "grammar/jsontext"},
	"grammar/document":    {"grammar/expr", "grammar/refs", "grammar/value"},
	"grammar/ebnf":        {"grammar/expr", "grammar/schema", "grammar/syntax"},
	"grammar/ecma":        {"grammar/dfa", "grammar/expr"},
	"grammar/expr":        {},
	"grammar/format":      {"grammar/dfa", "grammar/ecma", "grammar/expr", "grammar/jsontext"},
	"grammar/grammartest": {},
	"grammar/instance":    {"grammar/expr", "grammar/items", "grammar/jsontext"},
	"grammar/items":       {},
	"grammar/jsontext":    {"grammar/expr"},
	"grammar/lark":        {"grammar/dfa", "grammar/expr", "grammar/schema", "grammar/syntax"},
	"grammar/number":      {"grammar/dfa", "grammar/ecma", "grammar/expr"},
	"grammar/places":      {},
	"grammar/program":     {"grammar/expr", "grammar/recursion"},
	"grammar/recursion":   {"grammar/expr"},
	"grammar/refs":        {},
	"grammar/regex":       {"grammar/expr"},
	"grammar/schema": {
		"grammar/dfa", "grammar/document", "grammar/ecma", "grammar/expr", "grammar/format", "grammar/instance",
		"grammar/jsontext", "grammar/number", "grammar/regex", "grammar/value",
	},
	"grammar/syntax":     {"grammar/expr"},
	"grammar/trie":       {},
	"grammar/value":      {"grammar/expr", "grammar/jsontext"},
	"grammar/vocabulary": {"grammar/expr", "grammar/items", "grammar/trie"},
	"grammar/tags":       {"grammar/dfa", "grammar/ebnf", "grammar/expr", "grammar/regex", "grammar/schema"},
}

// room is the longest path in the table of arrows that a package is at or below, or else the first folder of its path;
// the root is "".
func room(importPath string) string {
	path := strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
	for name := path; ; {
		if _, known := arrows[name]; known {
			return name
		}
		above := strings.LastIndexByte(name, '/')
		if above < 0 {
			return name
		}
		name = name[:above]
	}
}

func TestArrows(t *testing.T) {
	for _, p := range packages(t) {
		from := room(p.ImportPath)
		allowed, known := arrows[from]
		if from != "" && !known {
			t.Errorf("%s: the room %q is not in the table of arrows", p.ImportPath, from)
			continue
		}
		for _, imported := range p.Imports {
			to := room(imported)
			if !strings.HasPrefix(imported, module) || to == from || to == "internal/limits" || slices.Contains(allowed, "*") {
				continue
			}
			// Reading published reference scores, and quantizing weights, is what models' tests share.
			if p.ImportPath == module+"/models/modeltest" && (to == "safetensors" || to == "quantize") {
				continue
			}
			if !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s: %s may import only %v", p.ImportPath, imported, from, allowed)
			}
		}
	}
}

// The packages of a room with a table of its own import each other one way only.
func TestArrowsInside(t *testing.T) {
	listed := map[string]bool{}
	for path := range inside {
		listed[room(module+"/"+path)] = true
	}
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module+"/")
		if !listed[room(p.ImportPath)] {
			continue
		}
		allowed, known := inside[from]
		if !known {
			t.Errorf("%s is not in the table of its room", from)
		}
		for _, imported := range p.Imports {
			to := strings.TrimPrefix(imported, module+"/")
			if to != imported && room(imported) == room(p.ImportPath) && !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s: it may import only %v", from, to, allowed)
			}
		}
	}
}

// The module of the benchmarks is compiled as the program is, so that they measure what is released.
func TestBenchToolchain(t *testing.T) {
	versions := regexp.MustCompile(`(?m)^(go|toolchain) .*$`)
	var found [2][]string
	for i, name := range []string{"go.mod", "bench/go.mod"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found[i] = versions.FindAllString(string(text), -1)
	}
	if len(found[0]) != 2 || !slices.Equal(found[0], found[1]) {
		t.Errorf("bench/go.mod has %q, want %q as in go.mod", found[1], found[0])
	}
}

// Every package says in exactly one file what it is for.
func TestPackageDocs(t *testing.T) {
	bench, err := packagesIn("bench")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range slices.Concat(packages(t), bench) {
		var with []string
		for _, name := range append(p.GoFiles, p.CgoFiles...) {
			mode := parser.PackageClauseOnly | parser.ParseComments
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, mode)
			if err != nil {
				t.Fatal(err)
			}
			if f.Doc != nil && strings.TrimSpace(f.Doc.Text()) != "" {
				with = append(with, name)
			}
		}
		if len(with) != 1 && len(p.GoFiles)+len(p.CgoFiles) > 0 {
			t.Errorf("%s: a package comment is in %v, want it in one file", p.ImportPath, with)
		}
	}
}

// The engine is reached through one file, so that everything else builds without cgo.
func TestOneFileUsesCgo(t *testing.T) {
	var with []string
	eachGoFile(t, func(path string, f *ast.File) {
		for _, i := range f.Imports {
			if i.Path.Value == `"C"` {
				with = append(with, filepath.ToSlash(path))
			}
		}
	})
	if !slices.Equal(with, []string{"mlx/cgo.go"}) {
		t.Errorf("files that import \"C\": %v, want mlx/cgo.go alone", with)
	}
}
