package prompt

import (
	"slices"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/fit"
	"github.com/ingotml/ingot/chat/jinja"
)

// harmony prepares a request for the template of gpt-oss. The template knows one call per message, whose result
// follows, and text or thinking before it, but not both; texts are strings; tools have descriptions. Thinking cannot be
// turned off, so it is kept short.
func harmony(r chat.Request) chat.Request {
	if r.Think != nil && !*r.Think && r.ThinkLevel == "" {
		r.ThinkLevel = "low"
	}
	var out []chat.Message
	for i := 0; i < len(r.Messages); i++ {
		m := plainText(r.Messages[i])
		if len(m.ToolCalls) == 0 {
			out = append(out, m)
			continue
		}
		if m.Reasoning != "" && m.Content != "" {
			m.Reasoning, m.Content = m.Reasoning+"\n\n"+m.Content, ""
		}
		var results []chat.Message
		for i+1 < len(r.Messages) && r.Messages[i+1].Role == "tool" {
			i++
			results = append(results, plainText(r.Messages[i]))
		}
		out = append(out, fit.OneByOne(m, results)...)
	}
	r.Messages, r.Tools = out, slices.Clone(r.Tools)
	for i, t := range r.Tools {
		r.Tools[i] = described(t)
	}
	return r
}

// described returns a tool with a description, which may be empty.
func described(t chat.Tool) chat.Tool {
	if t.Value == nil {
		return t
	}
	v, _ := t.Value.Get("function")
	f, ok := v.(*jinja.Dict)
	if !ok {
		return t
	}
	if _, has := f.Get("description"); has {
		return t
	}
	function, whole := f.Clone(), t.Value.Clone()
	function.Put("description", "")
	whole.Put("function", function)
	return chat.Tool{Value: whole}
}

// plainText returns a message whose content is a string.
func plainText(m chat.Message) chat.Message {
	m.Parts, m.Null = nil, false
	return m
}
