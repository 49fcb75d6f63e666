package server_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/url"
	"os"
	gopath "path"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/server/openapi"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// description is the OpenAPI document.
type description struct {
	text     []byte
	paths    map[string]map[string]operationObject
	compiler *jsonschema.Compiler
}

type operationObject struct {
	RequestBody struct {
		Content map[string]struct{ Schema json.RawMessage }
	}
	Responses map[string]struct {
		Content map[string]struct{ Schema json.RawMessage }
	}
}

func describe(t *testing.T, f *fixture) *description {
	t.Helper()
	status, text := f.Ask(t, "GET", "/openapi.json", "")
	if status != 200 {
		t.Fatalf("status %d: %s", status, text)
	}
	var d struct {
		OpenAPI string
		Paths   map[string]map[string]operationObject
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil || d.OpenAPI != "3.1.0" {
		t.Fatalf("%v, %q", err, d.OpenAPI)
	}
	root, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	out := &description{text: []byte(text), paths: d.Paths, compiler: jsonschema.NewCompiler()}
	if err := out.compiler.AddResource("file:///openapi.json", root); err != nil {
		t.Fatal(err)
	}
	return out
}

// schema compiles the schema at a path of the document.
func (d *description) schema(t *testing.T, path ...string) *jsonschema.Schema {
	t.Helper()
	var pointer strings.Builder
	for _, p := range path {
		pointer.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(p))
	}
	s, err := d.compiler.Compile("file:///openapi.json#" + (&url.URL{Path: pointer.String()}).EscapedPath())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return s
}

// valid validates a value against a schema.
func valid(t *testing.T, s *jsonschema.Schema, text []byte, what string) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = s.Validate(v)
	}
	if err != nil {
		t.Errorf("%s: %v\n%.2000s", what, err, text)
	}
}

func split(key string) (method, path string) {
	method, path, _ = strings.Cut(key, " ")
	path, _ = openapi.PathOf(path)
	return strings.ToLower(method), path
}

// Every route is in the document, and the document has no others.
func TestOpenAPIRoutes(t *testing.T) {
	f := serve(t, nil)
	d := describe(t, f)
	want := map[string]bool{}
	for _, r := range f.AllEndpoints() {
		key := r.Method + " " + r.Path
		if r.Operation.Summary == "" {
			t.Errorf("%s has no operation", key)
		}
		method, path := split(key)
		want[method+" "+path] = true
	}
	for path, methods := range d.paths {
		for method := range methods {
			if !want[method+" "+path] {
				t.Errorf("the document has %s %s, which is not a route", method, path)
			}
			delete(want, method+" "+path)
		}
	}
	for route := range want {
		t.Errorf("the document lacks %s", route)
	}
	if unknown := f.UnknownTypes(); len(unknown) > 0 {
		t.Errorf("types with their own JSON methods and no special schema: %v", unknown)
	}
	var all struct {
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal(d.text, &all); err != nil {
		t.Fatal(err)
	}
	for name := range all.Components.Schemas {
		d.schema(t, "components", "schemas", name)
	}
}

// docs/serve.md has every route. Its parameters are in capitals there.
func TestRoutesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range serve(t, nil).AllEndpoints() {
		fixed, parameter, _ := strings.Cut(strings.TrimSuffix(r.Path, "{$}"), "{")
		row := "`" + r.Method + " " + fixed
		if parameter == "" {
			row += "`"
		}
		if !strings.Contains(string(page), row) && !strings.Contains(string(page), strings.TrimSuffix(row, "`")+"?") {
			t.Errorf("docs/serve.md lacks %s %s: add it to the table of its API", r.Method, r.Path)
		}
	}
}

// The schema of a request has exactly the members of the handler's type, and the handler decodes this type.
func TestOpenAPIRequests(t *testing.T) {
	f := serve(t, nil)
	d := describe(t, f)
	code := map[string]map[string][]*ast.FuncDecl{} // by package
	for _, r := range f.AllEndpoints() {
		key := r.Method + " " + r.Path
		op := r.Operation
		if op.Request == nil {
			continue
		}
		method, path := split(key)
		var names []string
		read(op.Request, &names)
		slices.Sort(names)
		if got := d.properties(t, d.paths[path][method].RequestBody.Content["application/json"].Schema); !slices.Equal(got,
			names) {
			t.Errorf("%s: the document has %v\nthe handler decodes %v", key, got, names)
		}
		in, name, _ := strings.Cut(gopath.Base(goruntime.FuncForPC(reflect.ValueOf(r.Handle).Pointer()).Name()), ".")
		name = strings.TrimSuffix(name[strings.LastIndexByte(name, '.')+1:], "-fm")
		if code[in] == nil {
			code[in] = functions(t, in)
		}
		if !mentions(code[in], name, op.Request.Name(), 2) {
			t.Errorf("%s: the handler %s does not decode a %s", key, name, op.Request.Name())
		}
	}
}

// read lists the JSON names of a struct's members. It finds them in another way than the document does.
func read(t reflect.Type, names *[]string) {
	for _, f := range reflect.VisibleFields(t) {
		if len(f.Index) > 1 && f.Anonymous || !f.IsExported() {
			continue
		}
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "" || tag == "-" {
			continue
		}
		v := reflect.New(t)
		if !v.Elem().FieldByIndex(f.Index).CanSet() {
			continue
		}
		*names = append(*names, tag)
	}
}

// properties returns the names of an object's members. It follows references.
func (d *description) properties(t *testing.T, raw json.RawMessage) []string {
	t.Helper()
	var s struct {
		Ref        string `json:"$ref"`
		AllOf      []json.RawMessage
		Properties map[string]json.RawMessage
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	if s.Ref != "" {
		var all struct {
			Components struct{ Schemas map[string]json.RawMessage }
		}
		if err := json.Unmarshal(d.text, &all); err != nil {
			t.Fatal(err)
		}
		return d.properties(t, all.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")])
	}
	names := slices.Collect(maps.Keys(s.Properties))
	for _, part := range s.AllOf {
		names = append(names, d.properties(t, part)...)
	}
	slices.Sort(names)
	return names
}

// functions returns the functions of an API's package, by name.
func functions(t *testing.T, dir string) map[string][]*ast.FuncDecl {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]*ast.FuncDecl{}
	for _, e := range files {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), gopath.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				out[fn.Name.Name] = append(out[fn.Name.Name], fn)
			}
		}
	}
	return out
}
