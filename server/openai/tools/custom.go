package tools

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/grammar"
)

// inputKey is the parameter of a custom tool.
const inputKey = "input"

// unseen are members of a tool that are for the server.
var unseen = map[string]bool{
	"type": true, "defer_loading": true, "allowed_callers": true, "output_schema": true, "async": true, "execution": true,
	"format": true,
}

// show returns the function that the model is offered. What the client has written keeps its order.
func (t Tool) show(ctx context.Context) chat.Tool {
	fn := jinja.NewDict()
	if _, named := t.function.Get("name"); !named {
		fn.Put("name", t.Offered)
	}
	t.function.Each(func(k, v jinja.Value) bool {
		switch key, _ := k.(string); {
		case key == "name":
			fn.Put(key, t.Offered)
		case !unseen[key]:
			fn.Put(key, v)
		}
		return true
	})
	if t.Kind == Custom {
		about, pattern := t.about(ctx)
		fn.Put("description", about)
		fn.Put("parameters", inputSchema(pattern))
		if pattern != "" {
			fn.Put("strict", true)
		}
	}
	d := jinja.NewDict()
	if t.outer == nil || typeMissing(t.outer) {
		d.Put("type", string(Function))
	}
	if t.outer != nil {
		t.outer.Each(func(k, v jinja.Value) bool {
			switch key, _ := k.(string); {
			case key == "type":
				d.Put(key, string(Function))
			case key == string(t.Kind):
				d.Put(string(Function), fn)
			case !unseen[key]:
				d.Put(key, v)
			}
			return true
		})
	}
	d.Put(string(Function), fn)
	return chat.Tool{Value: d}
}

func typeMissing(d *jinja.Dict) bool {
	_, given := d.Get("type")
	return !given
}

// inputSchema is the schema of a custom tool's arguments. pattern is a regular expression of the whole input, or "".
func inputSchema(pattern string) *jinja.Dict {
	input := jinja.NewDict()
	input.Put("type", "string")
	input.Put("description", "The whole input of the tool, as plain text.")
	if pattern != "" {
		input.Put("pattern", pattern)
	}
	properties, schema := jinja.NewDict(), jinja.NewDict()
	properties.Put(inputKey, input)
	schema.Put("type", "object")
	schema.Put("properties", properties)
	schema.Put("required", jinja.NewList(inputKey))
	schema.Put("additionalProperties", false)
	return schema
}

// about returns the description of a custom tool, and the pattern that its input is held to. A format that cannot be
// enforced is described to the model.
func (t Tool) about(ctx context.Context) (about, pattern string) {
	about = text(t.function, "description")
	add := func(more string) {
		if about != "" {
			about += "\n\n"
		}
		about += more
	}
	definition, regex := t.definition()
	if definition == "" {
		return about, ""
	}
	if regex {
		add("The input matches this regular expression: " + definition)
		return about, enforceable(ctx, definition)
	}
	add("The input matches this Lark grammar:\n" + definition)
	return about, ""
}

// definition returns the format of a custom tool's input, "" if there is none: a regular expression, or a grammar.
func (t Tool) definition() (definition string, regex bool) {
	if t.Kind != Custom {
		return "", false
	}
	v, _ := t.function.Get("format")
	format, _ := v.(*jinja.Dict)
	if v, nested := format.Get("grammar"); nested { // the form of chat completions
		format, _ = v.(*jinja.Dict)
	}
	definition = text(format, "definition")
	return definition, definition != "" && text(format, "syntax") == "regex"
}

// enforceable returns the pattern of a JSON schema whose texts match a regular expression as a whole, or "" if the
// constraints of package grammar cannot express it.
func enforceable(ctx context.Context, expression string) string {
	pattern := "^(?:" + expression + ")$"
	schema, err := jinja.EncodeJSON(inputSchema(pattern))
	if err != nil {
		return ""
	}
	if _, err := grammar.CompileSchema(ctx, []byte(schema)); err != nil {
		return ""
	}
	return pattern
}

// Arguments returns the arguments that stand for a custom tool's input.
func Arguments(input string) *jinja.Dict {
	d := jinja.NewDict()
	d.Put(inputKey, input)
	return d
}

// Input returns the input in a model's arguments of a custom tool: the text input, the only text if the model has named
// it otherwise, or else all arguments.
func Input(arguments json.RawMessage) string {
	var text string
	if json.Unmarshal(arguments, &text) == nil {
		return text
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(arguments, &fields) == nil {
		value, named := fields[inputKey]
		if !named && len(fields) == 1 {
			for _, value = range fields {
				named = true
			}
		}
		if named && json.Unmarshal(value, &text) == nil && !bytes.Equal(value, []byte("null")) {
			return text
		}
		if named {
			return string(value)
		}
	}
	return string(arguments)
}
