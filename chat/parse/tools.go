package parse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/chat/parse/calls"
	"github.com/ingotml/ingot/chat/parse/notation"
)

// tools are the offered tools by name.
type tools map[string]tool

type tool struct {
	types    map[string][]string // of the parameters
	required []string
}

func newTools(list []calls.Tool) tools {
	out := tools{}
	for _, t := range list {
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Required   json.RawMessage            `json:"required"`
		}
		_ = json.Unmarshal(t.Parameters, &schema) // an invalid schema has no types
		tl := tool{types: map[string][]string{}}
		_ = json.Unmarshal(schema.Required, &tl.required)
		defs := calls.DefinitionsOf(t.Parameters)
		for name, p := range schema.Properties {
			tl.types[name] = defs.Types(p, 0)
		}
		out[t.Name] = tl
	}
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
