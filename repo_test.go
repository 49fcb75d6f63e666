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
