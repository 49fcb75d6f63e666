package ingot_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	_ "github.com/ingotml/ingot/arch/types"
)

// otherWords are the folders and files whose words are spelled like model types and mean something else.
var otherWords = map[string]string{
	"arch/config/layers.go":    "kinds of layers",
	"chat/parse":               "formats of output",
	"convert/gguf":             "kinds of tokenizers in files of GGUF, and an architecture",
	"convert/packed/foreign":   "methods of quantization",
	"convert/tokens":           "tokenizer classes of transformers, by all of its types",
	"manifest/store/storetest": "images for tests",
	"registry/registrytest":    "images for tests",
	"server/servertest":        "a parser",
	"tokenizer/tokenizertest":  "tokenizers",
}

// Everything about a model type is in its file of arch/types and in its package below models. No other code knows one
// by name: what differs between types is a fact of their registrations.
func TestTypesAreNamedInOnePlace(t *testing.T) {
	names := map[string]bool{}
	for _, name := range arch.Types() {
		names[name] = true
	}
	used := map[string]bool{}
	for _, file := range tracked(t) {
		if path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/") ||
			underAny(file, "arch/types", "bench", "interop") || names[modelOf(file)] {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			word, _ := strconv.Unquote(lit.Value) // the parser has
			if !names[word] {
				return true
			}
			for place := range otherWords {
				if underAny(file, place) {
					used[place] = true
					return true
				}
			}
			t.Errorf("%s: %q is a model type: make what it decides a fact of its registration in arch/types",
				set.Position(lit.Pos()), word)
			return true
		})
	}
	for place := range otherWords {
		if !used[place] {
			t.Errorf("%s has no word like a model type: remove it from otherWords", place)
		}
	}
}

// modelOf returns the folder of models that a file is in, or "".
func modelOf(file string) string {
	rest, _ := strings.CutPrefix(file, "models/")
	folder, _, in := strings.Cut(rest, "/")
	if !in || rest == file {
		return ""
	}
	return folder
}

// underAny reports whether a file is one of some places or below one.
func underAny(file string, places ...string) bool {
	for _, place := range places {
		if file == place || strings.HasPrefix(file, place+"/") {
			return true
		}
	}
	return false
}
