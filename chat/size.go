package chat

import "github.com/ingotml/ingot/chat/jinja"

// What the parts of a request count with in Size beside their texts, in bytes.
const (
	messageSize = 256
	valueSize   = 16
)

// Size is about how many bytes of input a template gets.
func (r Request) Size() int64 {
	n := weight(r.Documents) + weight(r.Extra) + int64(len(r.BOS)+len(r.EOS)+len(r.ThinkLevel)+len(r.Suffix))
	for _, m := range r.Messages {
		n += messageSize + int64(len(m.Role)+len(m.Content)+len(m.Reasoning)+len(m.ToolCallID)+len(m.Name)) + weight(m.Extra)
		for _, p := range m.Parts {
			n += messageSize + int64(len(p.Type)+len(p.Text)) + weight(p.Fields)
		}
		for _, c := range m.ToolCalls {
			n += messageSize + int64(len(c.ID)+len(c.Name)) + weight(c.Arguments)
		}
	}
	for _, t := range r.Tools {
		n += messageSize + weight(t.Value)
	}
	return n
}

// weight is about how many bytes a value takes.
func weight(v jinja.Value) int64 {
	n := int64(valueSize)
	switch v := v.(type) {
	case string:
		n += int64(len(v))
	case jinja.Markup:
		n += int64(len(v))
	case jinja.Bytes:
		n += int64(len(v))
	case *jinja.List:
		for _, x := range v.Items {
			n += weight(x)
		}
	case *jinja.Dict:
		if v == nil {
			return 0
		}
		v.Each(func(k, x jinja.Value) bool { n += weight(k) + weight(x); return true })
	}
	return n
}
