package ingot_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// examples has what each task of the README takes as a package: the entry, and the package that has an example of it.
var examples = []struct{ task, pkg, entry string }{
	{"import", "convert", "Create"},
	{"quantize an image", "convert", "Create_quantize"},
	{"quantize weights", "quantize", "Type_Encode"},
	{"push", "registry", "Client_Push"},
	{"pull", "registry", "Client_Pull"},
	{"sign", "registry/attest", "Sign"},
	{"run", "runtime", "Engine"},
	{"verify", "runtime/verify", "Image"},
}

// Each task has an example whose output the tests compare. go vet checks that its entry exists.
func TestExamples(t *testing.T) {
	for _, e := range examples {
		files, err := filepath.Glob(filepath.Join(filepath.FromSlash(e.pkg), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var parsed []*ast.File
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, f)
		}
		if !slices.ContainsFunc(doc.Examples(parsed...), func(x *doc.Example) bool {
			return x.Name == e.entry && x.Output != ""
		}) {
			t.Errorf("to %s: %s has no Example%s with its output", e.task, e.pkg, e.entry)
		}
	}
}
