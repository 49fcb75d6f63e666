// Package calls describes the tool calls of a format as EBNF rules of package grammar.
//
// Contract: the rules allow what the models of a format were trained to write. Schemas are passed on unread; whoever
// compiles the rules reports what they cannot hold.
package calls

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat/jinja"
)

// ErrNoGrammar means that no grammar can describe the calls of a format.
var ErrNoGrammar = errors.New("no grammar can describe the model's tool calls")

// Offer is a tool whose calls a grammar allows.
type Offer struct {
	Tool
	// Strict restricts the arguments to the tool's schema. In formats that do not write strings as JSON, a string
	// parameter is restricted only if it is an enum. If not strict, the grammar allows all arguments that the format can
	// write.
	Strict bool
}

// Arguments returns the rule of a call's arguments as JSON.
func (o Offer) Arguments() (string, error) {
	if !o.Strict {
		return jsonSign + `{"type": "object"}`, nil
	}
	schema, err := o.schema()
	if err != nil {
		return "", err
	}
	text, err := jinja.EncodeJSON(schema)
	return jsonSign + text, err
}

// schema returns the schema of the arguments. Its type defaults to object.
func (o Offer) schema() (*jinja.Dict, error) {
	out := jinja.NewDict()
	if len(o.Parameters) > 0 && string(o.Parameters) != "null" {
		d, err := jinja.DecodeVars(o.Parameters)
		if err != nil {
			return nil, fmt.Errorf("parameters: %w", err)
		}
		out = d
	}
	if _, typed := out.Get("type"); !typed {
		_ = out.Set("type", "object") // cannot fail: the key is a string
	}
	return out, nil
}

// within adds the definitions of root to one of its subschemas.
func within(root *jinja.Dict, schema string) string {
	var defs []string
	for _, key := range []string{"$defs", "definitions"} {
		if d, ok := dict(root, key); ok {
			if text, err := jinja.EncodeJSON(d); err == nil {
				defs = append(defs, fmt.Sprintf("%q: %s, ", key, text))
			}
		}
	}
	if len(defs) == 0 {
		return schema
	}
	return "{" + strings.Join(defs, "") + `"allOf": [` + schema + "]}"
}

func dict(d *jinja.Dict, key string) (*jinja.Dict, bool) {
	v, _ := d.Get(key)
	out, ok := v.(*jinja.Dict)
	return out, ok
}

// texts returns a list of strings; nil if it contains anything else.
func texts(d *jinja.Dict, key string) (out []string) {
	v, _ := d.Get(key)
	list, ok := v.(*jinja.List)
	if !ok {
		return nil
	}
	for _, x := range list.Items {
		s, ok := x.(string)
		if !ok {
			return nil
		}
		out = append(out, s)
	}
	return out
}

// Tool describes an offered tool to the parser.
type Tool struct {
	Name       string
	Parameters json.RawMessage // JSON schema of the arguments; may be empty
}

// Definitions are the schemas that $ref can refer to.
type Definitions struct {
	schemas map[string]json.RawMessage // by reference
	found   map[string][]string        // their types; nil while being computed
}

func DefinitionsOf(schema json.RawMessage) Definitions {
	var s struct {
		Defs        map[string]json.RawMessage `json:"$defs"`
		Definitions map[string]json.RawMessage `json:"definitions"`
	}
	_ = json.Unmarshal(schema, &s) // an invalid schema has no definitions
	out := Definitions{schemas: map[string]json.RawMessage{}, found: map[string][]string{}}
	for name, d := range s.Defs {
		out.schemas["#/$defs/"+name] = d
	}
	for name, d := range s.Definitions {
		out.schemas["#/definitions/"+name] = d
	}
	return out
}

// maxUnions bounds the nesting of unions and references whose types are resolved.
const maxUnions = 64

// Types returns the types that a schema allows. A union allows the types of all its members. Each definition is
// resolved once.
func (d Definitions) Types(schema json.RawMessage, depth int) []string {
	var s struct {
		Type  json.RawMessage   `json:"type"`
		Ref   string            `json:"$ref"`
		AnyOf []json.RawMessage `json:"anyOf"`
		OneOf []json.RawMessage `json:"oneOf"`
		AllOf []json.RawMessage `json:"allOf"`
	}
	if depth > maxUnions || json.Unmarshal(schema, &s) != nil {
		return nil
	}
	var out []string
	members := slices.Concat(s.AnyOf, s.OneOf)
	if len(s.AllOf) == 1 { // some generators wrap a reference in allOf
		members = append(members, s.AllOf...)
	}
	add := func(types []string) {
		for _, t := range types {
			if !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	for _, member := range members {
		add(d.Types(member, depth+1))
	}
	if def, ok := d.schemas[s.Ref]; ok {
		types, seen := d.found[s.Ref]
		if !seen {
			d.found[s.Ref] = nil
			types = d.Types(def, depth+1)
			d.found[s.Ref] = types
		}
		add(types)
	}
	if len(out) > 0 {
		return out
	}
	var one string
	if json.Unmarshal(s.Type, &one) == nil && one != "" {
		return []string{one}
	}
	_ = json.Unmarshal(s.Type, &out)
	return out
}
