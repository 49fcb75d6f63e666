package grammar

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// Combinations of keywords accept exactly the instances that the specification does.
func TestCheckSchema(t *testing.T) {
	for _, c := range []struct {
		schema  string
		yes, no []string
	}{
		{`{"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}, "unevaluatedProperties": false}]}`,
			[]string{`{"b": 1}`}, []string{`{"a": 1}`}},
		{`{"allOf": [{"properties": {"a": {}}}], "properties": {"b": {}}, "unevaluatedProperties": false}`,
			[]string{`{"a": 1, "b": 2}`}, []string{`{"c": 1}`}},
		{`{"type": "string", "pattern": "^\\S+$"}`, []string{`"é"`}, []string{`"a\u00a0b"`, `"a\ufeff"`}},
		{`{"$ref": "#x", "$defs": {"e": {"enum": [{"$anchor": "x", "type": "null"}]}, "d": {"$anchor": "x",
			"type": "string"}}}`, []string{`"a"`}, []string{`null`}},
		{`{"const": -2.0}`, []string{`-2`, `-2.0`}, []string{`2`}},
		{`{"const": -2}`, []string{`-2.0`}, nil},
		{`{"type": "integer", "oneOf": [{"minimum": 5}, {"maximum": 8}]}`, []string{`4`, `9`}, []string{`5`, `8`}},
		{`{"type": "string", "format": "date", "pattern": "^2", "maxLength": 10}`, []string{`"2024-02-29"`},
			[]string{`"1999-01-01"`, `"2023-02-29"`}},
		{`{"not": {"type": ["string", "number"]}}`, []string{`null`, `[1]`}, []string{`1`, `"a"`}},
		{`{"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}, "type": "object"}`,
			[]string{`{"a": 1, "b": 1}`, `{"c": 1}`}, []string{`{"a": 1}`, `{"b": 1}`}},
		{`{"dependentRequired": {"a": ["b"]}}`, []string{`{"b": 1}`, `{"a": 1, "b": 2}`, `3`}, []string{`{"a": 1}`}},
		{`{"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": {"type": "integer"}}`,
			[]string{`{"x-a": "", "b": 1}`}, []string{`{"x-a": 1}`, `{"b": ""}`}},
		{`{"contains": {"const": 1}, "minContains": 2, "maxContains": 3}`, []string{`[1, 0, 1]`, `[1, 1, 1]`},
			[]string{`[1]`, `[1, 1, 1, 1]`}},
		{`{"items": {"enum": ["a", "b"]}, "uniqueItems": true}`, []string{`["b", "a"]`, `[]`}, []string{`["a", "a"]`}},
		{`{"multipleOf": 0.01, "type": "number"}`, []string{`1.25`, `-3`, `0.1`}, []string{`1.255`}},
		{`{"multipleOf": 997, "type": "integer"}`, []string{`0`, `1994`, `-997`}, []string{`998`}},
		{`{"multipleOf": 1000000, "type": "integer"}`, []string{`0`, `3000000`}, []string{`300000`}},
		{`{"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "minimum": 1, "exclusiveMinimum": true}`,
			[]string{`2`}, []string{`1`, `2.0`}},
		{`{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "maxLength": 1,
			"definitions": {"a": {"type": "string"}}}`, []string{`"abc"`}, []string{`1`}},
		{`{"type": "string", "format": "uri"}`,
			[]string{`"http://a.b:65535/c?d#e"`, `"file:///x"`, `"mailto:a@b.c"`, `"urn:isbn:1"`}, []string{`"a b"`, `"/x"`}},
		{`{"type": "string", "format": "email"}`, []string{`"first.last+tag@a-b.example"`}, []string{`"a@-b"`, `"a..b@c"`}},
		{`{"type": "string", "format": "ipv6"}`, []string{`"::ffff:1.2.3.4"`, `"1::8"`}, []string{`"1::2::3"`}},
		{`{"kind": "unknown", "x-a": 1}`, []string{`1`}, nil},
	} {
		instances := make([][]byte, 0, len(c.yes)+len(c.no))
		for _, i := range append(append([]string{}, c.yes...), c.no...) {
			instances = append(instances, []byte(i))
		}
		check := CheckSchema(t.Context(), []byte(c.schema), instances, SchemaOptions{})
		want := fmt.Sprint(append(trues(len(c.yes)), make([]bool, len(c.no))...))
		if got := fmt.Sprint(check.Accepted); !check.Compiles || got != want {
			t.Errorf("%s: got %v (%s), want %v of %s", c.schema, got, check.Error, want, instances)
		}
	}
}

func trues(n int) []bool {
	all := make([]bool, n)
	for i := range all {
		all[i] = true
	}
	return all
}

// With best effort, what cannot be held is left out and said; strict schemas name unknown keywords.
func TestSchemaOptions(t *testing.T) {
	look := []byte(`{"type": "string", "pattern": "(?<=a)b"}`)
	if c := CheckSchema(t.Context(), look, nil, SchemaOptions{BestEffort: true}); !c.Compiles || len(c.LeftOut) != 1 {
		t.Errorf("best effort: got %+v", c)
	}
	if c := CheckSchema(t.Context(), []byte(`{"kind": 1}`), nil, SchemaOptions{Strict: true}); c.Compiles {
		t.Errorf("strict: got %+v", c)
	}
	if c := CheckSchema(t.Context(), []byte(`false`), [][]byte{[]byte("1")}, SchemaOptions{}); !c.Empty || c.Accepted[0] {
		t.Errorf("false: got %+v", c)
	}
}

// A set of an enumeration, as pydantic writes it: its items are a reference to the constants.
func TestUniqueReferences(t *testing.T) {
	check := CheckSchema(context.Background(), []byte(`{"$defs": {"color": {"$ref": "#/$defs/name"}, "name": {"enum": `+
		`["red", "blue"], "type": "string"}}, "type": "array", "items": {"$ref": "#/$defs/color"}, "uniqueItems": true}`),
		[][]byte{[]byte(`[]`), []byte(`["blue", "red"]`), []byte(`["red", "red"]`), []byte(`["green"]`)}, SchemaOptions{})
	if !check.Compiles || !slices.Equal(check.Accepted, []bool{true, true, false, false}) {
		t.Errorf("%+v", check)
	}
}
