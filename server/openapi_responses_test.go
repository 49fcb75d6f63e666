package server_test

import (
	"bytes"
	"go/ast"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/servertest"
	"github.com/ingotml/ingot/server/wire"
)

// mentions reports whether a function, or one that it calls, contains an identifier.
func mentions(code map[string][]*ast.FuncDecl, function, name string, depth int) bool {
	found := false
	for _, fn := range code[function] {
		if depth == 0 || fn.Body == nil {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				found = found || n.Name == name
			case *ast.CallExpr:
				switch called := n.Fun.(type) {
				case *ast.Ident:
					found = found || mentions(code, called.Name, name, depth-1)
				case *ast.SelectorExpr:
					found = found || mentions(code, called.Sel.Name, name, depth-1)
				}
			}
			return !found
		})
	}
	return found
}

// noSamples are routes whose tests need more than a request: a registry, or a file. The responses of pull and push
// have the same type as those of /api/create.
var noSamples = map[string]bool{
	"POST /api/pull": true, "POST /api/push": true,
	"HEAD /api/blobs/{digest}": true, "POST /api/blobs/{digest}": true,
	"POST /v1/responses/{id}/cancel": true, // a response in progress
	"POST /v1/files":                 true, "GET /v1/files/{id}": true, "DELETE /v1/files/{id}": true,
	"POST /v1/batches":     true,
	"GET /v1/batches/{id}": true, "POST /v1/batches/{id}/cancel": true,
}

// Responses, messages of streams and errors match the document.
func TestOpenAPIResponses(t *testing.T) {
	f := serve(t, nil)
	d := describe(t, f)
	for _, r := range f.AllEndpoints() {
		key := r.Method + " " + r.Path
		op := r.Operation
		method, path := split(key)
		if noSamples[key] || op.Media != "" {
			continue
		}
		if len(r.Samples) == 0 {
			t.Errorf("%s has no samples", key)
		}
		kinds := map[string]bool{}
		for _, s := range r.Samples {
			if op.Request != nil {
				valid(t, d.schema(t, "paths", path, method, "requestBody", "content", "application/json", "schema"), []byte(s.Body),
					key)
			}
			f.Says = []string{"Hello", " world"}
			if s.Output != nil {
				f.Says = s.Output
			}
			f.StopModel("talk:latest")
			f.StopModel("plain:latest")
			kind, messages := f.sample(t, r, s)
			if op.Response == nil && op.Stream == nil {
				continue
			}
			kinds[kind] = true
			if len(messages) == 0 {
				t.Errorf("%s %s: no messages", key, s.Body)
			}
			if _, ok := d.paths[path][method].Responses["200"].Content[kind]; !ok {
				t.Errorf("%s %s: the document lacks the response type %s", key, s.Body, kind)
				continue
			}
			schema := d.schema(t, "paths", path, method, "responses", "200", "content", kind, "schema")
			for _, m := range messages {
				valid(t, schema, m, key+" "+s.Body)
			}
		}
		for kind := range d.paths[path][method].Responses["200"].Content {
			if !kinds[kind] {
				t.Errorf("%s: no sample has a response of type %s", key, kind)
			}
		}
	}
	// Errors of every route that decodes JSON.
	for _, r := range f.AllEndpoints() {
		key := r.Method + " " + r.Path
		if r.Operation.Request == nil {
			continue
		}
		method, path := split(key)
		status, text := f.Ask(t, r.Method, pathOf(r.Path), "{")
		if status < 400 {
			t.Errorf("%s: an incomplete request has status %d", key, status)
		}
		valid(t, d.schema(t, "paths", path, method, "responses", "default", "content", "application/json", "schema"),
			[]byte(text), key)
	}
}

// sample sends a request and returns the messages of its response.
func (f *fixture) sample(t *testing.T, r server.Endpoint, s server.Sample) (kind string, messages [][]byte) {
	t.Helper()
	path := s.Path
	if path == "" {
		path = pathOf(r.Path)
	}
	if s.Stores != "" {
		collection, _, _ := strings.Cut(r.Path, "/{")
		_, text := f.Ask(t, "POST", collection, s.Stores)
		id := servertest.Decode[struct{ ID string }](t, text).ID
		path = strings.Replace(r.Path, "{id}", id, 1)
	}
	q, err := http.NewRequestWithContext(t.Context(), r.Method, f.URL+path, strings.NewReader(s.Body))
	if err != nil {
		t.Fatal(err)
	}
	if r.Header != "" {
		q.Header.Set(r.Header, "any")
	}
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 200 {
		t.Errorf("%s %s: status %d: %s, %v", path, s.Body, response.StatusCode, b, err)
	}
	kind, _, _ = strings.Cut(response.Header.Get("Content-Type"), ";")
	switch kind {
	case wire.LinesType:
		for line := range bytes.Lines(b) {
			messages = append(messages, line)
		}
	case wire.EventsType:
		for line := range bytes.Lines(b) {
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && string(bytes.TrimSpace(data)) != "[DONE]" {
				messages = append(messages, data)
			}
		}
	default:
		messages = [][]byte{b}
	}
	return kind, messages
}
