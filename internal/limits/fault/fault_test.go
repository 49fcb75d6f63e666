package fault_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "github.com/ingotml/ingot/cmd" // registers every error
	"github.com/ingotml/ingot/internal/limits/fault"
)

const root = "../../.."

// declared is a package-level variable whose name starts with Err or err and that has a value.
type declared struct {
	name       string // folder.ErrName
	registered string // the Name of its entry, if Register makes it
	alias      bool   // of another package's error
}

// errorsOf lists the errors that the program's packages declare.
func errorsOf(t *testing.T) []declared {
	t.Helper()
	var list []declared
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && (d.Name() == "testdata" || path == root+"/bench" || path == root+"/interop" ||
			strings.HasPrefix(d.Name(), ".") && path != root):
			return fs.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				for i, value := range v.Values {
					name := v.Names[i].Name
					if !strings.HasPrefix(name, "Err") && !strings.HasPrefix(name, "err") {
						continue
					}
					of, alias := value.(*ast.SelectorExpr)
					list = append(list, declared{
						name: folder + "." + name, registered: entry(value),
						alias: alias && strings.HasPrefix(of.Sel.Name, "Err"),
					})
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// entry returns the Name of the Kind in a call of Register, or "".
func entry(value ast.Expr) string {
	call, ok := value.(*ast.CallExpr)
	if !ok || len(call.Args) != 2 {
		return ""
	}
	if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "Register" {
		return ""
	}
	kind, ok := call.Args[1].(*ast.CompositeLit)
	if !ok {
		return ""
	}
	for _, e := range kind.Elts {
		field := e.(*ast.KeyValueExpr)
		text, ok := field.Value.(*ast.BasicLit)
		if ok && field.Key.(*ast.Ident).Name == "Name" {
			name, _ := strconv.Unquote(text.Value)
			return name
		}
	}
	return ""
}

// TestEveryErrorIsKnown holds that every exported error of the program is registered under its own name, or listed as
// internal with a reason, and that the program's table has no others.
func TestEveryErrorIsKnown(t *testing.T) {
	reasons := map[string]string{}
	for _, i := range internal {
		for _, name := range strings.Fields(i.names) {
			if i.reason == "" || reasons[name] != "" {
				t.Errorf("%s is listed twice, or without a reason", name)
			}
			reasons[name] = i.reason
		}
	}
	var want []string
	for _, e := range errorsOf(t) {
		_, name, _ := strings.Cut(e.name[strings.LastIndexByte(e.name, '/')+1:], ".")
		_, listed := reasons[e.name]
		delete(reasons, e.name)
		switch {
		case e.registered != "":
			want = append(want, e.registered)
			if e.registered != e.name || listed {
				t.Errorf("%s is registered as %s (listed as internal: %v)", e.name, e.registered, listed)
			}
		case e.alias || listed || strings.HasPrefix(name, "err"):
		default:
			t.Errorf("%s: declare it with fault.Register, or list it in internal/limits/fault/internal_test.go with the reason "+
				"why nothing outside the program tells it apart", e.name)
		}
	}
	for name := range reasons {
		t.Errorf("internal_test.go lists %s, which does not exist", name)
	}
	var got []string
	for _, k := range fault.Kinds() {
		if !slices.Contains([]string{"syscall.ENOSPC", "context.DeadlineExceeded", "context.Canceled"}, k.Name) {
			got = append(got, k.Name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the table has %v\nthe source declares %v", got, want)
	}
}

// TestKinds holds that entries are complete, and that nothing in them is ambiguous.
func TestKinds(t *testing.T) {
	ranks, names, wires := map[fault.Rank]string{}, map[string]bool{}, map[string]bool{}
	for _, k := range fault.Kinds() {
		if other := ranks[k.Rank]; other != "" || k.Rank <= 0 {
			t.Errorf("%s has rank %d, as has %q", k.Name, k.Rank, other)
		}
		ranks[k.Rank] = k.Name
		switch {
		case k.Err == nil || k.Name == "" || k.Means == "":
			t.Errorf("%s: the entry is incomplete: %+v", k.Name, k)
		case names[k.Name] || k.Wire != "" && wires[k.Wire]:
			t.Errorf("%s, on the wire %q, is not unique", k.Name, k.Wire)
		case k.Exit == 0 && k.Status == 0 && k.Transfer == 0 && k.Code == "" && k.Wire == "" && k.Remedy == "":
			t.Errorf("%s: nothing distinguishes it: list it as internal", k.Name)
		case k.Advice != "" && k.Status == 0 && k.Transfer == 0:
			t.Errorf("%s: its Advice is never shown, because it has no status", k.Name)
		}
		names[k.Name], wires[k.Wire] = true, true
	}
}

// TestLookup holds that each question about a lone error is answered by its own entry.
func TestLookup(t *testing.T) {
	for _, k := range fault.Kinds() {
		if k.Name == "prompt.ErrLong" { // it is an ErrPrompt too, which has a name on the wire
			continue
		}
		status, advice := fault.Status(k.Err)
		transfer, _ := fault.Transfer(k.Err)
		if status != k.Status || transfer != k.Transfer || fault.CodeOf(k.Err) != k.Code ||
			fault.WireName(k.Err) != k.Wire || fault.Exit(k.Err) != max(k.Exit, fault.ExitFailed) {
			t.Errorf("%s: status %d, transfer %d, code %q, wire %q, exit %d", k.Name, status, transfer, fault.CodeOf(k.Err),
				fault.WireName(k.Err), fault.Exit(k.Err))
		}
		if status != 0 && strings.TrimPrefix(advice, "; ") != k.Advice {
			t.Errorf("%s: the advice is %q", k.Name, advice)
		}
		if strings.TrimPrefix(fault.Remedy(k.Err), "; ") != k.Remedy {
			t.Errorf("%s: the remedy is %q", k.Name, fault.Remedy(k.Err))
		}
		if k.Wire != "" && fault.OfWire(k.Wire) != k.Err {
			t.Errorf("%s: %q is %v", k.Name, k.Wire, fault.OfWire(k.Wire))
		}
	}
	if err := fault.OfWire(""); err != nil {
		t.Errorf("the empty name is %v", err)
	}
	if status, advice := fault.Status(os.ErrInvalid); status != 0 || advice != "" || fault.Exit(os.ErrInvalid) != 1 {
		t.Errorf("an unknown error has status %d %q", status, advice)
	}
}
