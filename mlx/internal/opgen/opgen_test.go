package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGeneratedFilesAreCurrent(t *testing.T) {
	dir := filepath.Join("..", "..")
	files, err := generate(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s does not match bridge/ops.txt and bridge.h: run go generate ./mlx", name)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := parse(`
# a comment
Abs(x) = mx::abs(x, s) -- is |x|.

  Split(x, at ints) -> many = mx::split(x, at, s) -- cuts x -- twice.
// Join joins them.
// It copies.
Join(xs arrays) = mx::join(xs, s)
part(x, scale array?, eps float) = mx::part(x, scale, eps)
`)
	want := []op{
		{Name: "Abs", Expr: "mx::abs(x, s)", Doc: "Abs is |x|.", Args: []arg{{"x", "array"}}},
		{Name: "Split", Expr: "mx::split(x, at, s)", Doc: "Split cuts x -- twice.", Many: true,
			Args: []arg{{"x", "array"}, {"at", "ints"}}},
		{Name: "Join", Expr: "mx::join(xs, s)", Doc: "Join joins them.\nIt copies.", Args: []arg{{"xs", "arrays"}}},
		{Name: "part", Expr: "mx::part(x, scale, eps)", Args: []arg{{"x", "array"}, {"scale", "array?"}, {"eps", "float"}}},
	}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
}

func TestParseRefuses(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		{"Abs x = y -- z", `ops.txt:2: not of the form Name(args) = expression -- doc: "Abs x = y -- z"`},
		{"Abs(x) -- is |x|.", "ops.txt:2: not of the form"},
		{"Abs(x) -> two = y -- z", "ops.txt:2: not of the form"},
		{"Abs(x) = mx::abs(x, s)", "ops.txt:2: Abs has no doc"},
		{"// Abs is |x|.\nAbs(x) = y -- z", "ops.txt:3: Abs has two comments"},
		{"// The size.\nAbs(x) = y", "ops.txt:3: the comment of Abs does not begin with the name"},
		{"// Abs is |x|.\n# It is.", "ops.txt:3: the comment before has no operation"},
		{"One(x) = y -- z", "ops.txt:2: One is defined twice"},
		{"Abs(x number) = y -- z", `ops.txt:2: Abs: argument x has the unknown type "number"`},
		{"Abs(x int int) = y -- z", `ops.txt:2: Abs: argument "x int int" is not NAME or NAME TYPE`},
		{"Abs(x, ) = y -- z", `ops.txt:2: Abs: argument "" is not NAME or NAME TYPE`},
		{"Abs() = y -- z", "ops.txt:2: Abs: argument"},
	} {
		_, err := parse("One(x) = y -- z\n" + test.line + "\n")
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want %q", test.line, err, test.want)
		}
	}
}

func TestGoFunctions(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		// The thread comes from the first array, or is an argument if there is none.
		{"Add(a, b) = y -- z", "func Add(a *Array, b *Array) *Array {\n\tc := threadOf(opAdd, a).begin(opAdd)\n" +
			"\tc.array(a)\n\tc.array(b)\n\treturn c.one()\n}"},
		{"Eye(n int) = y -- z", "func Eye(t *Thread, n int) *Array {\n\tc := t.begin(opEye)\n\tc.int(n)"},
		{"Stack(axis int, xs arrays) = y -- z",
			"func Stack(axis int, xs ...*Array) *Array {\n\tc := threadOf(opStack, xs...).begin(opStack)"},
		// Only a list at the end is variadic.
		{"Pad(x, low ints, v float) = y -- z", "func Pad(x *Array, low []int, v float64) *Array {"},
		{"Sum(x, axes ints) = y -- z", "func Sum(x *Array, axes ...int) *Array {"},
		{"Split(x, type int) -> many = y -- z", "func Split(x *Array, type_ int) []*Array {"},
		{"Norm(x, w array?) = y -- z", "\tc.optional(w)\n"},
		{"slice(x) = y", "begin(opSlice)"},
	} {
		ops, err := parse(test.line)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(goFile(ops)); !strings.Contains(got, test.want) {
			t.Errorf("%s: no %q in\n%s", test.line, test.want, got)
		}
	}
}

// The ABI number changes with ops.txt and with the header, so that a program rejects a library that was built from
// other versions of them.
func TestABI(t *testing.T) {
	number := func(list, header string) string {
		t.Helper()
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "bridge", "src", "core"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"ops.txt": list, "src/core/bridge.h": header} {
			if err := os.WriteFile(filepath.Join(dir, "bridge", name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		files, err := generate(dir)
		if err != nil {
			t.Fatal(err)
		}
		abi := strings.TrimSpace(string(files["bridge/abi_gen.go"]))
		abi = abi[strings.LastIndex(abi, " ")+1:]
		if !strings.Contains(string(files["bridge/src/ops/ops_gen.cc"]), "abi = "+abi+";") {
			t.Errorf("the two sides differ: %s", files["bridge/src/ops/ops_gen.cc"])
		}
		return abi
	}
	one := number("Abs(x) = y -- z", "int a;")
	if got := number("Abs(x) = y -- z", "int a;"); got != one {
		t.Errorf("the same sources give %s and %s", one, got)
	}
	if got := number("Abs(x, n int) = y -- z", "int a;"); got == one {
		t.Error("another list has the same ABI number")
	}
	if got := number("Abs(x) = y -- z", "int b;"); got == one {
		t.Error("another header has the same ABI number")
	}
}

func TestGenerateNeedsItsFiles(t *testing.T) {
	if _, err := generate(t.TempDir()); err == nil || !strings.Contains(err.Error(), "ops.txt") {
		t.Errorf("got %v", err)
	}
}
