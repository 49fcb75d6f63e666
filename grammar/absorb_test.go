package grammar

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Conditions that each ask for one of the same definitions do not multiply: after the first choice the others hold.
func TestRepeatedAlternatives(t *testing.T) {
	var conditions []string
	for i := range 12 {
		conditions = append(conditions, fmt.Sprintf(`{"if": {"properties": {"type": {"const": "k%d"}}}, "then": {"anyOf": [
			{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b", "description": "k%[1]d"}, {"$ref": "#/$defs/c"}]}}`, i))
	}
	source := `{"type": "object", "properties": {"type": {"enum": ["k0", "k5", "k11", "free"]}}, "allOf": [` +
		strings.Join(conditions, ", ") + `], "$defs": {
			"a": {"properties": {"x": {"type": "integer"}}, "required": ["x"]},
			"b": {"properties": {"y": {"type": "string"}}, "required": ["y"]},
			"c": {"properties": {"z": {"type": "null"}}, "required": ["z"]}}}`
	g := compileSchema(t, source)
	if places := len(g.program.Nodes); places > 20_000 {
		t.Errorf("%d places", places)
	}
	valid := validator(t, source)
	for text, want := range map[string]bool{
		`{"type": "free"}`:                             true,
		`{"type": "k5"}`:                               false,
		`{"type": "k5", "x": 1}`:                       true,
		`{"type": "k5", "y": "s"}`:                     true,
		`{"type": "k11", "z": null, "other": []}`:      true,
		`{"type": "k11", "x": "s", "y": 1}`:            false,
		`{"x": "s", "z": null}`:                        true, // without a type all conditions hold
		`{"x": "s"}`:                                   false,
		`{"type": "k0", "x": 1, "y": 2, "z": 3}`:       true,
		`{"type": "k0", "x": 1.5, "y": 2, "z": false}`: false,
	} {
		if wrong := validate(valid, text); (wrong == nil) != want {
			t.Fatalf("%s: the validator says %v", text, wrong)
		}
		if got, err := g.AcceptsJSON([]byte(text)); got != want || err != nil {
			t.Errorf("%s: accepted: %v, %v, want %v", text, got, err, want)
		}
	}
}

// An alternative that holds settles only unions of which any may hold, and not what is unevaluated.
func TestAlternativesThatCount(t *testing.T) {
	const defs = `, "$defs": {"a": {"properties": {"x": {"type": "integer"}}}, "b": {"properties": {"y": true}},
		"loop": {"type": "null", "anyOf": [{"$ref": "#/$defs/loop"}, {"const": 1}]}}}`
	for _, c := range []struct{ schema, yes, no string }{
		{`{"type": "object", "required": ["x", "y"], "allOf": [{"$ref": "#/$defs/a"}, {"oneOf": [{"$ref": "#/$defs/a"},
			{"properties": {"y": {"type": "null"}}}]}]`, `{"x": 1, "y": 2}`, `{"x": 1, "y": null}`},
		{`{"type": "object", "$ref": "#/$defs/a", "anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
			"unevaluatedProperties": false`, `{"x": 1, "y": 2}`, `{"x": 1, "z": 2}`},
		{`{"type": "object", "allOf": [{"not": {"required": ["y"]}}, {"anyOf": [{"required": ["y"]},
			{"required": ["x"]}]}]`, `{"x": 1}`, `{"y": 1}`},
	} {
		g := compileSchema(t, c.schema+defs)
		valid := validator(t, c.schema+defs)
		for text, want := range map[string]bool{c.yes: true, c.no: false} {
			if wrong := validate(valid, text); (wrong == nil) != want {
				t.Fatalf("%s: %s: the validator says %v", c.schema, text, wrong)
			}
			if got, err := g.AcceptsJSON([]byte(text)); got != want || err != nil {
				t.Errorf("%s: %s: accepted: %v, %v, want %v", c.schema, text, got, err, want)
			}
		}
	}
	if _, err := CompileSchema(t.Context(), []byte(`{"$ref": "#/$defs/loop"`+defs)); !errors.Is(err, ErrInvalid) {
		t.Errorf("a schema that refers to itself for the same value: %v", err)
	}
}
