package ingot_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// noRace are the packages with goroutines or locks whose tests `make test-race` leaves out, and why.
// `make test-long` runs all packages under it.
var noRace = map[string]string{
	"mlx/mlxtest":             "a fixture: it runs in the tests of mlx",
	"internal/limits/runtest": "what it measures of memory is of tests that run alone",
}

// raced returns the packages that `make test-race` tests under the race detector: RACE in the Makefile.
func raced(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^RACE +:= ((?:.*\\\n)*.*)$`).FindSubmatch(text)
	if line == nil {
		t.Fatal("the Makefile has no RACE")
	}
	patterns := strings.Fields(strings.ReplaceAll(string(line[1]), "\\\n", " "))
	out, err := exec.Command("go", append([]string{"list"}, patterns...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// concurrent reports whether a file starts goroutines or imports what they need.
func concurrent(t *testing.T, path string) (found bool) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range file.Imports {
		if slices.Contains([]string{`"sync"`, `"sync/atomic"`, `"golang.org/x/sync/errgroup"`}, i.Path.Value) {
			return true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if _, ok := n.(*ast.GoStmt); ok {
			found = true
		}
		return !found
	})
	return found
}

// Packages with goroutines or locks are tested under the race detector.
func TestRaceDetector(t *testing.T) {
	known := raced(t)
	left := make(map[string]bool, len(noRace))
	for name := range noRace {
		left[name] = true
	}
	for _, p := range packages(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		listed := slices.Contains(known, p.ImportPath)
		if left[name] {
			delete(left, name)
			if listed {
				t.Errorf("%s is in RACE and in noRace", name)
			}
			continue
		}
		if !listed && slices.ContainsFunc(slices.Concat(p.GoFiles, p.CgoFiles), func(file string) bool {
			return concurrent(t, filepath.Join(p.Dir, file))
		}) {
			t.Errorf("%s has goroutines or locks: add it to RACE in the Makefile, or to noRace with a reason", name)
		}
	}
	for name := range left {
		t.Errorf("noRace has %s, which does not exist", name)
	}
}
