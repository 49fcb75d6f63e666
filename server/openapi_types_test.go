package server_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/server"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// place is a member of a request: names of objects, and "0" for the first element of an array.
type place []string

// places lists the members of a schema, of all its alternatives, to a depth.
func (d *description) places(t *testing.T, schema any, depth int) (list []place) {
	t.Helper()
	s, _ := schema.(map[string]any)
	if ref, _ := s["$ref"].(string); ref != "" {
		var all struct {
			Components struct{ Schemas map[string]any }
		}
		if err := json.Unmarshal(d.text, &all); err != nil {
			t.Fatal(err)
		}
		return d.places(t, all.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")], depth)
	}
	for _, group := range []string{"anyOf", "allOf", "oneOf"} {
		alternatives, _ := s[group].([]any)
		for _, one := range alternatives {
			list = append(list, d.places(t, one, depth)...)
		}
	}
	if depth == 0 {
		return list
	}
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		list = append(list, place{name})
		for _, inner := range d.places(t, properties[name], depth-1) {
			list = append(list, append(place{name}, inner...))
		}
	}
	if items := s["items"]; items != nil {
		list = append(list, place{"0"})
		for _, inner := range d.places(t, items, depth-1) {
			list = append(list, append(place{"0"}, inner...))
		}
	}
	return list
}

// set returns a copy of a value with a member replaced. It makes the objects and arrays on the way.
func set(v any, at place, to json.RawMessage) any {
	if len(at) == 0 {
		return to
	}
	if at[0] == "0" {
		list, _ := v.([]any)
		if list = slices.Clone(list); len(list) == 0 {
			list = []any{nil}
		}
		list[0] = set(list[0], at[1:], to)
		return list
	}
	m, _ := v.(map[string]any)
	if m = maps.Clone(m); m == nil {
		m = map[string]any{"role": "user", "type": "text", "name": "x"} // what such objects need
	}
	m[at[0]] = set(m[at[0]], at[1:], to)
	return m
}

// goWords are in no message.
var goWords = []string{"Go ", "struct {", "json:", "jsonfit", "cannot unmarshal", "server.", "params.", "chat.",
	"int64", "float64", "RawMessage", "*"}

// Every handler rejects members of a wrong type with a message that names the member and has no words of Go, which also
// shows that it decodes the members in the document.
func TestOpenAPITypes(t *testing.T) {
	f := serve(t, nil)
	d := describe(t, f)
	eachRequest(t, f, d, func(key string, r server.Endpoint, whole *jsonschema.Schema, sample map[string]any,
		members []place) {
		for _, at := range members {
			for _, wrong := range []string{`"\u0001 no such text"`, `{"no such member":[]}`, `[[{}]]`, `true`, `1.5`} {
				text, invalid := withMember(t, whole, sample, at, wrong)
				if !invalid {
					continue // the type is allowed
				}
				status, response := f.Ask(t, r.Method, pathOf(r.Path), string(text))
				if len(at) == 1 && (status != 400 || !strings.Contains(response, at[0])) {
					t.Errorf("%s: %s = %s has status %d: %.200s", key, at[0], wrong, status, response)
				}
				for _, word := range goWords {
					if status >= 500 || status >= 400 && strings.Contains(response, word) {
						t.Errorf("%s: %s = %s has status %d with %q: %.200s", key, at, wrong, status, word, response)
					}
				}
			}
		}
	})
}

// Every integer may be written as a float, and a fraction is refused.
func TestOpenAPIIntegers(t *testing.T) {
	f := serve(t, nil)
	d := describe(t, f)
	tried := 0
	eachRequest(t, f, d, func(key string, r server.Endpoint, whole *jsonschema.Schema, sample map[string]any,
		members []place) {
		for _, at := range members {
			text, invalid := withMember(t, whole, sample, at, "1")
			if _, refused := withMember(t, whole, sample, at, "1.5"); invalid || !refused {
				continue // no integer
			}
			tried++
			want, plain := f.Ask(t, r.Method, pathOf(r.Path), string(text))
			for _, number := range []string{"1.0", "1e0", "0.1E+1", "10.00e-1"} {
				text, _ := withMember(t, whole, sample, at, number)
				if status, response := f.Ask(t, r.Method, pathOf(r.Path), string(text)); (status == 400) != (want == 400) {
					t.Errorf("%s: %s = %s has status %d: %.200s\n1 has %d: %.200s", key, at, number, status, response, want, plain)
				}
			}
		}
	})
	if tried < 30 {
		t.Errorf("only %d integers are in the document", tried)
	}
}

// eachRequest calls do for each route with a request.
func eachRequest(t *testing.T, f *fixture, d *description,
	do func(key string, r server.Endpoint, whole *jsonschema.Schema, sample map[string]any, members []place)) {
	t.Helper()
	for _, r := range f.AllEndpoints() {
		if r.Operation.Request == nil || len(r.Samples) == 0 {
			continue
		}
		key := r.Method + " " + r.Path
		method, path := split(key)
		whole := d.schema(t, "paths", path, method, "requestBody", "content", "application/json", "schema")
		var schema any
		raw := d.paths[path][method].RequestBody.Content["application/json"].Schema
		if err := json.Unmarshal(raw, &schema); err != nil {
			t.Fatal(err)
		}
		var sample map[string]any
		if err := json.Unmarshal([]byte(r.Samples[0].Body), &sample); err != nil {
			t.Fatal(err)
		}
		do(key, r, whole, sample, d.places(t, schema, 5))
	}
}

// withMember returns a sample with a member replaced, and whether that is invalid.
func withMember(t *testing.T, whole *jsonschema.Schema, sample map[string]any, at place, value string) ([]byte, bool) {
	t.Helper()
	text, err := json.Marshal(set(sample, at, json.RawMessage(value)))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return text, whole.Validate(v) != nil
}
