package limits

import (
	"flag"
	"fmt"
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

var update = flag.Bool("update", false, "rewrite the table in docs/security.md")

// constants lists the exported constants of this package that are limits: those without a type.
func constants(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				if v := s.(*ast.ValueSpec); v.Type == nil && v.Names[0].IsExported() {
					names = append(names, v.Names[0].Name)
				}
			}
		}
	}
	return names
}

func TestEveryConstantHasARow(t *testing.T) {
	var rows []string
	for _, l := range Table() {
		rows = append(rows, l.Name)
		if l.Value <= 0 || l.What == "" {
			t.Errorf("%s: the row is incomplete: %+v", l.Name, l)
		}
	}
	want := constants(t)
	slices.Sort(want)
	if !slices.Equal(rows, want) {
		t.Errorf("rows %v\nconstants %v", rows, want)
	}
}

// TestEveryLimitIsReached holds that the test a row names exists.
func TestEveryLimitIsReached(t *testing.T) {
	for _, l := range Table() {
		folder, name, ok := strings.Cut(l.Test, ".")
		if !ok {
			t.Errorf("%s names no test", l.Name)
			continue
		}
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		declared := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(name) + `\(t \*testing\.T\)`)
		if !slices.ContainsFunc(files, func(file string) bool {
			b, err := os.ReadFile(file)
			return err == nil && declared.Match(b)
		}) {
			t.Errorf("%s: %s has no test %s", l.Name, folder, name)
		}
	}
}

const (
	page  = "../../docs/security.md"
	begin = "<!-- limits: written by `go test ./internal/limits -update` -->\n"
	end   = "<!-- end of limits -->\n"
)

func TestPageHasTheTable(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", page)
	}
	var rows strings.Builder
	rows.WriteString("| Limit | Bounds | Value |\n|---|---|---|\n")
	for _, l := range Table() {
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", l.Name, l.What, l)
	}
	want := before + begin + rows.String() + end + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(b) != want {
		t.Errorf("%s differs from the table: run `go test ./internal/limits -update`", page)
	}
}
