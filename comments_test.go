package ingot_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	cmpdiff "github.com/google/go-cmp/cmp"
)

// source is a parsed Go file.
type source struct {
	file string
	ast  *ast.File
}

// library is the Go code of the repository and what it declares.
type library struct {
	set   *token.FileSet
	files []source
	names map[string]map[string]bool     // by import path: "Name" and "Type.Member"
	uses  map[string]map[string][]string // by import path: what its files import, by name
}

// newLibrary parses files. Their packages are at their folders below the module's path.
func newLibrary(files map[string]any) (*library, error) {
	l := &library{set: token.NewFileSet(), names: map[string]map[string]bool{}, uses: map[string]map[string][]string{}}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		parsed, err := parser.ParseFile(l.set, file, files[file], parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		l.files = append(l.files, source{file, parsed})
		at := importPath(file)
		if l.names[at] == nil {
			l.names[at], l.uses[at] = map[string]bool{}, map[string][]string{parsed.Name.Name: {at}}
		}
		declared(parsed, l.names[at])
		for _, i := range parsed.Imports {
			used := strings.Trim(i.Path.Value, `"`)
			name := path.Base(used)
			if i.Name != nil {
				name = i.Name.Name
			}
			l.uses[at][name] = append(l.uses[at][name], used)
		}
	}
	return l, nil
}

func importPath(file string) string { return path.Join(module, path.Dir(file)) }

// declared adds the names that a file declares.
func declared(file *ast.File, to map[string]bool) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			to[qualified(d)] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range s.Names {
						to[name.Name] = true
					}
				case *ast.TypeSpec:
					to[s.Name.Name] = true
					for _, member := range members(s.Type) {
						to[s.Name.Name+"."+member] = true
					}
				}
			}
		}
	}
}

// qualified returns "Name" of a function, and "Type.Name" of a method.
func qualified(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

// members returns the fields of a struct and the methods of an interface, embedded ones included.
func members(t ast.Expr) (names []string) {
	var list *ast.FieldList
	switch t := t.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return nil
	}
	for _, f := range list.List {
		for _, name := range f.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// docLink matches doc links: names, members of types, and both of packages. A name has a letter of each case, unlike
// shapes such as [T] and [heads].
var docLink = regexp.MustCompile(
	`\[\*?((?:[a-z][\w/]*\.)?(?:[A-Z]\w*\.\w+|[A-Z]\w*[a-z]\w*)|[a-z]+[A-Z]\w*)\](?:[^(:]|$)`)

// brokenLinks returns the doc links of comments that name nothing. Names of other modules are not checked.
func (l *library) brokenLinks() (problems []string) {
	for _, s := range l.files {
		if isGenerated(s.file) {
			continue
		}
		for _, group := range s.ast.Comments {
			for _, m := range docLink.FindAllStringSubmatch(group.Text(), -1) {
				name, places := m[1], []string{importPath(s.file)}
				if first, rest, ok := strings.Cut(name, "."); ok && unicode.IsLower(rune(first[0])) {
					name, places = rest, l.uses[places[0]][first]
					if standard, ok := comment.DefaultLookupPackage(first); ok {
						places = append(places, standard)
					}
				}
				if !slices.ContainsFunc(places, func(at string) bool {
					return l.names[at][name] || l.names[at] == nil && !strings.HasPrefix(at, module)
				}) {
					problems = append(problems, fmt.Sprintf("%v: [%s] names nothing", l.set.Position(group.Pos()), m[1]))
				}
			}
		}
	}
	return problems
}

var firstWord = regexp.MustCompile(`\w*`)

// misnamed returns the doc comments that do not begin with the name of what they are on. Those of tests say what holds.
func (l *library) misnamed() (problems []string) {
	check := func(doc *ast.CommentGroup, names ...*ast.Ident) {
		text := doc.Text()
		if text == "" {
			return
		}
		for _, article := range []string{"A ", "An ", "The "} {
			text = strings.TrimPrefix(text, article)
		}
		first := firstWord.FindString(text)
		if !slices.ContainsFunc(names, func(n *ast.Ident) bool { return n.Name == first }) {
			problems = append(problems,
				fmt.Sprintf("%v: the comment of %s begins %.40q", l.set.Position(doc.Pos()), names[0].Name, text))
		}
	}
	for _, s := range l.files {
		for _, d := range s.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if !strings.HasSuffix(s.file, "_test.go") || !isTest.MatchString(d.Name.Name) {
					check(d.Doc, d.Name)
				}
			case *ast.GenDecl:
				for i, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						check(cmp.Or(spec.Doc, only(d)), spec.Name)
					case *ast.ValueSpec:
						if !l.isHeading(d, i) {
							check(cmp.Or(spec.Doc, only(d)), spec.Names...)
						}
					}
				}
			}
		}
	}
	return problems
}

// only returns the comment of a declaration without parentheses, which is on its only name.
func only(d *ast.GenDecl) *ast.CommentGroup {
	if d.Lparen.IsValid() {
		return nil
	}
	return d.Doc
}

// isHeading reports whether the comment of a declaration's i-th line is on the next line, too.
func (l *library) isHeading(d *ast.GenDecl, i int) bool {
	if !d.Lparen.IsValid() || i+1 == len(d.Specs) {
		return false
	}
	next := d.Specs[i+1].(*ast.ValueSpec)
	return next.Doc == nil && l.set.Position(next.Pos()).Line == l.set.Position(d.Specs[i].End()).Line+1
}

var isTest = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)`)

func TestComments(t *testing.T) {
	files := map[string]any{}
	for _, file := range gitFiles(t, "--cached", "--others", "--exclude-standard", "*.go") {
		if !strings.Contains(file, "testdata/") {
			files[file] = nil
		}
	}
	l, err := newLibrary(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range slices.Concat(l.brokenLinks(), l.misnamed()) {
		t.Error(problem)
	}
}

// The words of a workaround: it says so, or names a product that has a fault.
var (
	workaround = regexp.MustCompile(`(?i)\bwork(?:s|ed|ing)?[ -]?arounds?\b|\b(?:bugs?|faults?) (?:in|of) (?-i:[A-Z])|` +
		`\b(?i:` + products + `) do(?:es)? not support\b`)
	products = `mlx|pip|gcc|clang|docker|ollama|transformers|mlx-lm|llama\.cpp|vllm|cosign|oras|containerd|ghcr\.io|` +
		`amazon ecr|artifact registry|harbor|quay|gitlab|zot|hugging face|modelscope|open webui|claude code|codex|` +
		`safari|firefox|chrome|linux|macos|glibc|cuda|net/http`
	commentMark = regexp.MustCompile(`(?:^|\s)(?://|#) ?`)
)

// comments returns the comments of a text by the number of their last line. Lines that follow each other are one.
func comments(text string) map[int]string {
	blocks, block := map[int]string{}, ""
	for n, line := range append(strings.Split(text, "\n"), "") {
		at := commentMark.FindStringIndex(line)
		if at == nil {
			if block != "" {
				blocks[n] = block
			}
			block = ""
			continue
		}
		block += line[at[1]:] + " "
	}
	return blocks
}

// unlinked returns the comments about workarounds that have no link to their cause.
func unlinked(file, text string) (problems []string) {
	for n, block := range comments(text) {
		if words := workaround.FindString(block); words != "" && !strings.Contains(block, "https://") {
			problems = append(problems, fmt.Sprintf("%s:%d: %q has no link", file, n, words))
		}
	}
	return problems
}

func TestWorkaroundsHaveLinks(t *testing.T) {
	for _, file := range styled(t, ".go", ".cc", ".h", ".py", ".sh") {
		if file == "comments_test.go" {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range unlinked(file, string(b)) {
			t.Error(problem)
		}
	}
}

// The rules find what they are for.
func TestCommentRules(t *testing.T) {
	l, err := newLibrary(map[string]any{"a/a.go": `package a

import "io"

// T is linked: [T.Run], [io.EOF], [*T], [Left].
type T struct{}

// Runs has another name, and links [T.Stop] and [b.Name].
func (T) Run(io.Reader) {}

// Values of a kind have a heading.
const (
	// Of two.
	Left = 1
	Right = 2

	// Of one.
	Top = 3
)`})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"a/a.go:8:1: [T.Stop] names nothing", "a/a.go:8:1: [b.Name] names nothing",
		`a/a.go:8:1: the comment of Run begins "Runs has another name, and links [T.Stop"`,
		`a/a.go:17:2: the comment of Top begins "Of one.\n"`,
	}
	if diff := cmpdiff.Diff(want, slices.Concat(l.brokenLinks(), l.misnamed())); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]int{
		"// A workaround.\nx": 1, "x // works around it,\n// see https://example.com": 0, "// MLX does not support it.": 1,
		"# a bug in GCC": 1, "a := \"workaround\"": 0, "// a type that kernels do not support": 0,
	} {
		if got := unlinked("a", text); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}
