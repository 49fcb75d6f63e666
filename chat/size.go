package chat

import "github.com/ingotml/ingot/chat/jinja"

// messageSize is the fixed size in bytes that Size adds per message, part, tool call and tool.
const messageSize = 256

// Size estimates the size of a template's input in bytes.
func (r Request) Size() int64 {
	n := jinja.Size(r.Documents) + jinja.Size(r.Extra) + int64(len(r.BOS)+len(r.EOS)+len(r.ThinkLevel)+len(r.Suffix))
	for _, m := range r.Messages {
		n += messageSize + int64(len(m.Role)+len(m.Content)+len(m.Reasoning)+len(m.ToolCallID)+len(m.Name)) +
			jinja.Size(m.Extra)
		for _, p := range m.Parts {
			n += messageSize + int64(len(p.Type)+len(p.Text)) + jinja.Size(p.Fields)
		}
		for _, c := range m.ToolCalls {
			n += messageSize + int64(len(c.ID)+len(c.Name)) + jinja.Size(c.Arguments)
		}
	}
	for _, t := range r.Tools {
		n += messageSize + jinja.Size(t.Value)
	}
	return n
}
