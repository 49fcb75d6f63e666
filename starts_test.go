package ingot_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// starters are what starts a program, by package.
var starters = map[string][]string{
	"os":                       {"StartProcess"},
	"os/exec":                  {"Command", "CommandContext", "Cmd"},
	"syscall":                  {"Exec", "ForkExec", "StartProcess", "CreateProcess"},
	"golang.org/x/sys/unix":    {"Exec", "ForkExec"},
	"golang.org/x/sys/windows": {"CreateProcess", "ShellExecute"},
	// These run credential helpers.
	"github.com/docker/docker-credential-helpers/client": {"NewShellProgramFunc", "NewShellProgramFuncWithEnv"},
	"github.com/docker/cli/cli/config/credentials":       {"NewNativeStore"},
	"github.com/google/go-containerregistry/pkg/authn":   {"DefaultKeychain"},
}

// mayStart are the folders and files that may, and why.
var mayStart = map[string]string{
	"internal/child":                 "it starts what all others need",
	"internal/launch/start_unix.go":  "a coding client works in the user's folder",
	"internal/launch/start_other.go": "a coding client works in the user's folder",
	"bench":                          "benchmarks are no part of the program",
	"cmd/supply":                     "checks of the supply chain run the go command and are no part of the program",

	"manifest/store/storetest/process.go": "it starts the tests themselves",
}

// takesCmd are files that change an exec.Cmd that package child has made; they name its type alone.
var takesCmd = []string{
	"mlx/engine/command_unix.go", "mlx/engine/command_other.go",
}

// Programs are started by package child, which keeps them out of the caller's folder.
func TestOnePackageStartsPrograms(t *testing.T) {
	seen := map[string]bool{} // of mayStart
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		folder := name // the one that may, if any
		for folder != "." && mayStart[folder] == "" {
			folder = path.Dir(folder)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, found := range starts(f) {
			switch {
			case mayStart[folder] != "":
				seen[folder] = true
			case found == "os/exec.Cmd" && slices.Contains(takesCmd, name):
			default:
				t.Errorf("%s uses %s: package child starts programs", name, found)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range mayStart {
		if !seen[name] {
			t.Errorf("%s starts no program and needs no exception", name)
		}
	}
}

// starts gives the uses of starters in a file.
func starts(f *ast.File) (found []string) {
	names := map[string]string{} // in the file, of packages that have starters
	for _, i := range f.Imports {
		importPath, _ := strconv.Unquote(i.Path.Value)
		if starters[importPath] == nil {
			continue
		}
		names[path.Base(importPath)] = importPath
		if i.Name != nil {
			names[i.Name.Name] = importPath
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && slices.Contains(starters[names[x.Name]], s.Sel.Name) {
			found = append(found, names[x.Name]+"."+s.Sel.Name)
		}
		return true
	})
	return found
}
