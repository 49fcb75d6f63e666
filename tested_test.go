package ingot_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// coveredBy has the packages that have no tests of their own, each with the package and the test that cover it. "/..."
// stands for a folder and all beneath it.
var coveredBy = map[string]string{
	"arch/...":          "models/all TestReference",
	"chat/jinja/ast":    "chat/jinja TestSnippets",
	"chat/jinja/format": "chat/jinja TestSnippets",
	"chat/parse/calls":  "chat/parse TestCallGrammar",

	"cmd/...":                 "cmd TestScripts",
	"convert/equalize":        "convert TestEqualize",
	"convert/internal/encode": "convert TestLongWords",
	"convert/packed/foreign":  "convert/packed TestForeignNames",
	"convert/packed/numbers":  "convert/packed TestEveryKindReadsTheSame",
	"convert/plan":            "convert TestPlanIsData",
	"convert/provenance":      "convert TestProvenance",
	"convert/source":          "convert TestRecognized",
	"grammar/...":             "grammar TestMaskIsAccept",
	"models/...":              "models/all TestReference",
	"prompt/calibration":      "cmd TestScripts",
	"runtime/pictures":        "runtime/batch TestGeneratePictures",
	"server/all":              "server TestOpenAPIRoutes",
	"server/openapi":          "server TestOpenAPITypes",
	"tokenizer/decode":        "tokenizer TestFamilies",
	"tokenizer/sentencepiece": "tokenizer TestSentencePiece",
}

// Every package has a test of its own, or a test of a package that depends on it covers it.
func TestPackagesAreTested(t *testing.T) {
	list := map[string]pkg{}
	for _, p := range packages(t) {
		list[p.name()] = p
	}
	used := map[string]bool{}
	for name, p := range list {
		entry := coveringEntry(name)
		tested := len(p.TestGoFiles)+len(p.XTestGoFiles) > 0
		if tested && entry == name {
			t.Errorf("%s has tests: remove it from coveredBy", name)
		}
		if tested || forTests(name) {
			continue
		}
		if entry == "" {
			t.Errorf("%s has no tests: write one, or name in coveredBy the test that covers it", name)
			continue
		}
		used[entry] = true
		folder, test, _ := strings.Cut(coveredBy[entry], " ")
		by := list[folder]
		if !declares(t, by, test) {
			t.Errorf("%s: coveredBy names %s of %s, which does not exist", name, test, folder)
		}
		if p.Name != "main" && !testsDependOn(list, by, name) {
			t.Errorf("%s: coveredBy names a test of %s, which does not depend on it", name, folder)
		}
	}
	for entry := range coveredBy {
		if !used[entry] {
			t.Errorf("coveredBy has %s, which has no package without tests", entry)
		}
	}
}

// forTests reports whether tests import a package: its name, or that of a folder above, ends in "test".
func forTests(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(s string) bool { return strings.HasSuffix(s, "test") })
}

// coveringEntry returns the entry of coveredBy for a package, or "".
func coveringEntry(name string) string {
	if coveredBy[name] != "" {
		return name
	}
	for dir := name; dir != "."; dir = path.Dir(dir) {
		if coveredBy[dir+"/..."] != "" {
			return dir + "/..."
		}
	}
	return ""
}

// declares reports whether a package's tests have a function.
func declares(t *testing.T, p pkg, function string) bool {
	t.Helper()
	return slices.ContainsFunc(slices.Concat(p.TestGoFiles, p.XTestGoFiles), func(file string) bool {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(f.Decls, func(d ast.Decl) bool {
			fn, ok := d.(*ast.FuncDecl)
			return ok && fn.Recv == nil && fn.Name.Name == function
		})
	})
}

// testsDependOn reports whether the tests of a package import another one, or what imports it.
func testsDependOn(list map[string]pkg, p pkg, name string) bool {
	seen := map[string]bool{}
	var visit func(imports []string) bool
	visit = func(imports []string) bool {
		return slices.ContainsFunc(imports, func(path string) bool {
			to, ours := list[strings.TrimPrefix(path, module+"/")]
			if !ours || seen[path] {
				return false
			}
			seen[path] = true
			return to.name() == name || visit(to.Imports)
		})
	}
	return visit(slices.Concat(p.Imports, p.TestImports, p.XTestImports))
}
