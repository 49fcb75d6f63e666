package chat

import (
	"encoding/json"
	"strings"

	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/internal/limits/jsonfit"
)

// Assistant is the role of the model's messages.
const Assistant = "assistant"

// Message is one message of a conversation. Its JSON is that of OpenAI's chat completions API.
type Message struct {
	Role       string
	Content    string // text; if there are parts, their texts concatenated
	Parts      []Part // nil if the content is a string or null
	Null       bool   // the content is null rather than an empty string
	Reasoning  string // the model's thinking
	ToolCalls  []ToolCall
	ToolCallID string
	Name       string
	Extra      *jinja.Dict // other fields, unchanged
	At         string      // what errors call the message, such as messages[3]
}

// Part is a part of a message's content: {"type": "text", "text": ...}, {"type": "image", ...} and so on.
type Part struct {
	Type   string
	Text   string
	Fields *jinja.Dict // all fields, unchanged; nil: only those above
}

// ToolCall is a function call by the model.
type ToolCall struct {
	ID        string
	Name      string
	Arguments jinja.Value // usually *jinja.Dict; a string if it is not a JSON object
	Text      string      // the JSON text that the arguments were given as, or ""
}

// Tool describes a function that the model may call: the request's JSON, unchanged.
type Tool struct{ Value *jinja.Dict }

// UnmarshalJSON decodes a message.
func (m *Message) UnmarshalJSON(b []byte) error {
	d, err := decodeObject(b)
	if err != nil {
		return err
	}
	return m.SetFields(d)
}

// SetFields sets the message to the fields of its JSON. Its errors are those of package jsonfit.
func (m *Message) SetFields(d *jinja.Dict) (err error) {
	*m = Message{Extra: jinja.NewDict()}
	d.Each(func(k, v jinja.Value) bool {
		s, isText := v.(string)
		switch key := k.(string); {
		case key == "role" && isText:
			m.Role = s
		case key == "content":
			err = m.SetContent(v)
		case (key == "reasoning_content" || key == "reasoning" || key == "thinking") && (isText || v == nil):
			if m.Reasoning == "" {
				m.Reasoning = s
			}
		case key == "tool_calls":
			err = m.setToolCalls(v)
		case key == "tool_call_id" && isText:
			m.ToolCallID = s
		case key == "name" && isText:
			m.Name = s
		default:
			_ = m.Extra.Set(k, v)
		}
		return err == nil
	})
	if err == nil && m.Role == "" {
		err = jsonfit.In(jsonfit.Errorf("missing"), "role")
	}
	return err
}

// SetContent sets the content: a text, a list of parts or null. Its errors are those of package jsonfit.
func (m *Message) SetContent(v jinja.Value) error {
	switch c := v.(type) {
	case nil:
		m.Null = true
	case string:
		m.Content = c
	case *jinja.List:
		m.Parts = []Part{}
		var texts []string
		for i, x := range c.Items {
			d, ok := x.(*jinja.Dict)
			if !ok {
				return jsonfit.In(jsonfit.Errorf("want an object"), "content", i)
			}
			p := Part{Type: field(d, "type"), Text: field(d, "text"), Fields: d}
			if p.Text != "" {
				texts = append(texts, p.Text)
			}
			m.Parts = append(m.Parts, p)
		}
		m.Content = strings.Join(texts, "")
	default:
		return jsonfit.In(jsonfit.Errorf("want a string, an array of parts or null"), "content")
	}
	return nil
}

func (m *Message) setToolCalls(v jinja.Value) error {
	if v == nil {
		return nil
	}
	list, ok := v.(*jinja.List)
	if !ok {
		return jsonfit.In(jsonfit.Errorf("want an array"), "tool_calls")
	}
	for i, x := range list.Items {
		d, ok := x.(*jinja.Dict)
		if !ok {
			return jsonfit.In(jsonfit.Errorf("want an object"), "tool_calls", i)
		}
		fn := d
		if f, ok := d.Get("function"); ok {
			if fn, ok = f.(*jinja.Dict); !ok {
				return jsonfit.In(jsonfit.Errorf("want an object"), "tool_calls", i, "function")
			}
		}
		args, _ := fn.Get("arguments")
		m.ToolCalls = append(m.ToolCalls, NewCall(field(d, "id"), field(fn, "name"), args))
	}
	return nil
}

// NewCall returns a call. Arguments that are the JSON text of an object become the object.
func NewCall(id, name string, arguments jinja.Value) ToolCall {
	c := ToolCall{ID: id, Name: name, Arguments: arguments}
	if text, ok := arguments.(string); ok {
		if d, err := jinja.DecodeVars([]byte(text)); err == nil {
			c.Arguments, c.Text = d, text
		}
	}
	return c
}

func field(d *jinja.Dict, key string) string {
	v, _ := d.Get(key)
	s, _ := v.(string)
	return s
}

// UnmarshalJSON decodes a tool and keeps the order of the keys.
func (t *Tool) UnmarshalJSON(b []byte) error {
	d, err := decodeObject(b)
	if err != nil {
		return err
	}
	t.Value = d
	return nil
}

// decodeObject decodes an object and keeps the order of its keys.
func decodeObject(b []byte) (*jinja.Dict, error) {
	if len(b) == 0 || b[0] != '{' {
		return nil, jsonfit.Wrong(b, "an object")
	}
	return jinja.DecodeVars(b)
}

// MarshalJSON encodes the tool with its keys in the original order.
func (t Tool) MarshalJSON() ([]byte, error) { return marshal(t.Value) }

// MarshalJSON encodes the message as in OpenAI's chat completions API.
func (m Message) MarshalJSON() ([]byte, error) { return marshal(m.value()) }

func marshal(v jinja.Value) ([]byte, error) {
	s, err := jinja.EncodeJSON(v)
	return []byte(s), err
}

// value returns the message as templates see it. The reasoning is set under both names that templates use.
func (m Message) value() *jinja.Dict {
	d := jinja.NewDict()
	set := func(k string, v jinja.Value) { _ = d.Set(k, v) }
	set("role", m.Role)
	switch {
	case m.Parts != nil:
		list := &jinja.List{}
		for _, p := range m.Parts {
			f := p.Fields
			if f == nil {
				f = jinja.NewDict()
				_ = f.Set("type", p.Type)
				if p.Type == "text" {
					_ = f.Set("text", p.Text)
				}
			}
			list.Items = append(list.Items, f)
		}
		set("content", list)
	case m.Null:
		set("content", nil)
	default:
		set("content", m.Content)
	}
	if m.Reasoning != "" {
		set("reasoning_content", m.Reasoning)
		set("thinking", m.Reasoning)
	}
	if len(m.ToolCalls) > 0 {
		list := &jinja.List{}
		for _, c := range m.ToolCalls {
			list.Items = append(list.Items, c.value())
		}
		set("tool_calls", list)
	}
	if m.ToolCallID != "" {
		set("tool_call_id", m.ToolCallID)
	}
	if m.Name != "" {
		set("name", m.Name)
	}
	if m.Extra != nil {
		m.Extra.Each(func(k, v jinja.Value) bool { _ = d.Set(k, v); return true })
	}
	return d
}

func (c ToolCall) value() *jinja.Dict {
	fn, d := jinja.NewDict(), jinja.NewDict()
	_ = fn.Set("name", c.Name)
	_ = fn.Set("arguments", c.Arguments)
	if c.ID != "" {
		_ = d.Set("id", c.ID)
	}
	_ = d.Set("type", "function")
	_ = d.Set("function", fn)
	return d
}

var _ json.Unmarshaler = (*Message)(nil)
