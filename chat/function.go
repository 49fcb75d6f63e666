package chat

import (
	"errors"

	"github.com/ingotml/ingot/chat/jinja"
)

// Function is the function of a tool in OpenAI's form.
type Function struct {
	Name       string
	Parameters []byte // JSON schema; nil: none
	Strict     bool   // calls must match the schema
}

// NewTool returns a tool in OpenAI's form, {"type": "function", "function": {...}}. parameters is a JSON schema, which
// must be an object.
func NewTool(name, description string, parameters []byte) (Tool, error) {
	schema, err := jinja.DecodeVars(parameters)
	if err != nil {
		return Tool{}, err
	}
	fn, tool := jinja.NewDict(), jinja.NewDict()
	// Set cannot fail: strings are valid keys.
	_ = fn.Set("name", name)
	if description != "" {
		_ = fn.Set("description", description)
	}
	_ = fn.Set("parameters", schema)
	_ = tool.Set("type", "function")
	_ = tool.Set("function", fn)
	return Tool{Value: tool}, nil
}

// Type returns the tool's type, which may be of any kind, or nil.
func (t Tool) Type() any {
	if t.Value == nil {
		return nil
	}
	kind, _ := t.Value.Get("type")
	return kind
}

// Function returns the function of a tool in OpenAI's form.
func (t Tool) Function() (f Function, err error) {
	fn, ok := dictOf(t.Value, "function")
	if !ok {
		return f, errors.New("function is missing")
	}
	name, _ := fn.Get("name")
	if f.Name, ok = name.(string); !ok || f.Name == "" {
		return f, errors.New("the function's name is missing")
	}
	if schema, ok := fn.Get("parameters"); ok && schema != nil {
		text, err := jinja.EncodeJSON(schema)
		if err != nil {
			return f, err
		}
		f.Parameters = []byte(text)
	}
	strict, _ := fn.Get("strict")
	f.Strict, _ = strict.(bool)
	return f, nil
}

// Nested converts a tool in the form {"type": "function", "name": ...} to OpenAI's.
func (t Tool) Nested() Tool {
	fn, d := jinja.NewDict(), jinja.NewDict()
	t.Value.Each(func(k, v jinja.Value) bool {
		to := fn
		if k == "type" {
			to = d
		}
		_ = to.Set(k, v) // cannot fail: k is a dict's key
		return true
	})
	_ = d.Set("function", fn) // cannot fail: strings are valid keys
	return Tool{Value: d}
}

// WithoutStrict returns the tool without the function's member strict, which is not meant for templates.
func (t Tool) WithoutStrict() Tool {
	fn, ok := dictOf(t.Value, "function")
	if !ok {
		return t
	}
	if _, ok := fn.Get("strict"); !ok {
		return t
	}
	return Tool{Value: replaced(t.Value, "function", replaced(fn, "strict", nil))}
}

// replaced returns a copy of a dict with another value for a key, or without the key if value is nil.
func replaced(d *jinja.Dict, key string, value *jinja.Dict) *jinja.Dict {
	out := jinja.NewDict()
	d.Each(func(k, v jinja.Value) bool {
		switch {
		case k != key:
			_ = out.Set(k, v) // cannot fail: k is a dict's key
		case value != nil:
			_ = out.Set(k, value)
		}
		return true
	})
	return out
}

// Field returns a text of a content part, or "".
func (p Part) Field(key string) string {
	if p.Fields == nil {
		return ""
	}
	return field(p.Fields, key)
}

// PictureURL returns the URL of a part with a picture: {"image_url": {"url": ...}} or {"image_url": ...}.
func (p Part) PictureURL() string {
	if d, ok := dictOf(p.Fields, "image_url"); ok {
		return field(d, "url")
	}
	return p.Field("image_url")
}

// WithoutExtra removes members from the message that are not for templates.
func (m *Message) WithoutExtra(keys ...string) {
	for _, key := range keys {
		m.Extra = replaced(m.Extra, key, nil)
	}
}

func dictOf(d *jinja.Dict, key string) (*jinja.Dict, bool) {
	if d == nil {
		return nil, false
	}
	v, _ := d.Get(key)
	out, ok := v.(*jinja.Dict)
	return out, ok
}
