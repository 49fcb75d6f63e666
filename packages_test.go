package ingot_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// pkg is what go list says of a package.
type pkg struct {
	Dir, ImportPath, Name, Doc                   string
	Imports, TestImports, XTestImports           []string
	GoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
}

// name is the package's folder; "." for the root.
func (p pkg) name() string {
	if p.ImportPath == module {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, module+"/")
}

// packages lists those of the program.
func packages(t *testing.T) []pkg {
	t.Helper()
	list, err := ours()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var ours = sync.OnceValues(func() ([]pkg, error) { return packagesIn(".") })

// packagesIn lists those of the module in a folder.
func packagesIn(dir string) (list []pkg, err error) {
	fields := "-json=Dir,ImportPath,Name,Doc,Imports,TestImports,XTestImports,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles"
	out, err := exec.Command("go", "-C", dir, "list", fields, "./...").Output()
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
}

// eachGoFile calls fn for all Go files of the repository, with their imports.
func eachGoFile(t *testing.T, fn func(path string, f *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		fn(path, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
