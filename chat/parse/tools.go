package parse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/chat/parse/notation"
)

// tools are the offered tools by name.
type tools map[string]tool

type tool struct {
	types    map[string][]string // of the parameters
	required []string
}

func newTools(list []Tool) tools {
	out := tools{}
	for _, t := range list {
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Required   json.RawMessage            `json:"required"`
		}
		_ = json.Unmarshal(t.Parameters, &schema) // an invalid schema has no types
		tl := tool{types: map[string][]string{}}
		_ = json.Unmarshal(schema.Required, &tl.required)
		defs := definitionsOf(t.Parameters)
		for name, p := range schema.Properties {
			tl.types[name] = defs.types(p, 0)
		}
		out[t.Name] = tl
	}
	return out
}

// definitions are the schemas that $ref can refer to.
type definitions struct {
	schemas map[string]json.RawMessage // by reference
	found   map[string][]string        // their types; nil while being computed
}

func definitionsOf(schema json.RawMessage) definitions {
	var s struct {
		Defs        map[string]json.RawMessage `json:"$defs"`
		Definitions map[string]json.RawMessage `json:"definitions"`
	}
	_ = json.Unmarshal(schema, &s) // an invalid schema has no definitions
	out := definitions{schemas: map[string]json.RawMessage{}, found: map[string][]string{}}
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

// types returns the types that a schema allows. A union allows the types of all its members. Each definition is
// resolved once.
func (d definitions) types(schema json.RawMessage, depth int) []string {
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
		add(d.types(member, depth+1))
	}
	if def, ok := d.schemas[s.Ref]; ok {
		types, seen := d.found[s.Ref]
		if !seen {
			d.found[s.Ref] = nil
			types = d.types(def, depth+1)
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

// arg is an argument: text as the model wrote it, or json if the model stated the type.
type arg struct {
	key, value string
	json       json.RawMessage
}

// call makes a call from arguments, whose text is converted to the types of the tool's schema. The last of duplicate
// keys wins.
func (t tools) call(name string, args []arg) (ToolCall, error) {
	if name == "" {
		return ToolCall{}, fmt.Errorf("%w: no name", ErrCall)
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, a := range lastOfEach(args) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(notation.Quote(a.key))
		b.WriteByte(':')
		if a.json != nil {
			b.Write(a.json)
		} else {
			b.Write(notation.Typed(a.value, t[name].types[a.key]))
		}
	}
	b.WriteByte('}')
	return ToolCall{Name: name, Arguments: b.Bytes()}, nil
}

// lastOfEach removes duplicate keys. A key keeps its first position and its last value.
func lastOfEach(args []arg) []arg {
	at := make(map[string]int, len(args))
	var out []arg
	for _, a := range args {
		if i, ok := at[a.key]; ok {
			out[i] = a
			continue
		}
		at[a.key] = len(out)
		out = append(out, a)
	}
	return out
}

// checkTruncated checks a call that the end of the text truncated: the tool must be offered, and all required arguments
// present.
func (t tools) checkTruncated(name string, args []arg) error {
	tl, ok := t[name]
	if !ok {
		return fmt.Errorf("%w: the text ends inside the call, and there is no tool %q", ErrIncomplete, excerpt(name))
	}
	for _, key := range tl.required {
		if !slices.ContainsFunc(args, func(a arg) bool { return a.key == key }) {
			return fmt.Errorf("%w: the text ends inside the call, before argument %q", ErrIncomplete, excerpt(key))
		}
	}
	for _, a := range args {
		if a.key == "" {
			return fmt.Errorf("%w: the text ends inside the call, and an argument has no name", ErrIncomplete)
		}
	}
	return nil
}
