package fit

import (
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
)

// Fit returns the messages as the template accepts them. tools says whether the request offers any.
func (s *Shape) Fit(list []chat.Message, tools bool) []chat.Message {
	c := s.calls(tools)
	out := make([]chat.Message, 0, len(list))
	for _, m := range list {
		if m.Null && len(m.ToolCalls) == 0 {
			m.Null = false // templates would print None
		}
		out = append(out, plain(m))
	}
	out = c.fitCalls(out)
	out = s.fitSystem(out)
	out = c.afterResults(out)
	out = s.alternating(out)
	out = s.begun(out, c)
	for i, m := range out {
		if isModels(m) {
			out[i].Role = s.Assistant
		}
		if s.Parts && m.Parts == nil {
			out[i] = withParts(out[i])
		}
	}
	return out
}

// Strict is Fit for any template that accepts turns of text.
func (s *Shape) Strict(list []chat.Message) []chat.Message { return s.strict().Fit(list, false) }

// fitSystem joins the system messages at the start, and moves the others to where the template accepts them.
func (s *Shape) fitSystem(list []chat.Message) []chat.Message {
	where := s.System
	if n := len(list); s.SystemLost && n > 0 && isModels(list[n-1]) {
		where = Nowhere
	}
	var out []chat.Message
	var held *chat.Message // a system text for the next user turn
	for i, m := range list {
		leading := len(out) == 0 || len(out) == 1 && out[0].Role == roleSystem
		switch {
		case m.Role == roleSystem && where != Nowhere && leading && held == nil:
			if len(out) == 1 {
				m, out = joined(out[0], m), out[:0]
			}
			out = append(out, m)
			continue
		case m.Role == roleSystem && where == Anywhere:
			out = append(out, m)
			continue
		case m.Role == roleSystem:
			m.Role = roleUser
			if held != nil {
				m = joined(*held, m)
			}
			held = &m
			if i < len(list)-1 {
				continue
			}
		case held == nil:
			out = append(out, m)
			continue
		case m.Role == roleUser:
			text := joined(*held, m)
			text.At = m.At
			out, held = append(out, text), nil
			continue
		}
		// No user turn follows: the text ends the one before, or is one of its own.
		if n := len(out); n > 0 && out[n-1].Role == roleUser {
			out[n-1] = joined(out[n-1], *held)
		} else {
			out = append(out, *held)
		}
		held = nil
		if m.Role != roleUser {
			out = append(out, m)
		}
	}
	return out
}

// alternating joins turns of the same side where the template demands that turns alternate.
func (s *Shape) alternating(list []chat.Message) []chat.Message {
	var out []chat.Message
	for _, m := range list {
		if n := len(out); n > 0 && out[n-1].Role == m.Role {
			last := out[n-1]
			text := len(last.ToolCalls) == 0 && len(m.ToolCalls) == 0
			if m.Role == roleUser && !s.Users || isModels(m) && text && !s.Assistants {
				out[n-1] = joined(last, m)
				continue
			}
		}
		out = append(out, m)
	}
	return out
}

// begun adapts the first turn.
func (s *Shape) begun(list []chat.Message, c Calls) []chat.Message {
	at := 0
	if len(list) > 0 && list[0].Role == roleSystem {
		at = 1
	}
	if at == 1 && len(list) == 1 {
		if !s.SystemOnly {
			list[0].Role = roleUser
		}
		return list
	}
	asked := slices.ContainsFunc(list, func(m chat.Message) bool { return m.Role == roleUser })
	if len(list) > 0 && (asked || s.NoUser) {
		switch first := list[at]; {
		case first.Role == roleUser, first.Role == roleTool && asked:
			return list
		case len(first.ToolCalls) > 0 && c.First, len(first.ToolCalls) == 0 && c.Greeting:
			return list
		}
	}
	m := chat.Message{Role: roleUser}
	if !s.EmptyUser {
		m.Content = "Hello"
	}
	return slices.Insert(list, at, m)
}

// between separates texts that were messages.
const between = "\n\n"

// joined returns a message with the content of another one appended.
func joined(a, b chat.Message) chat.Message {
	if a.Parts != nil || b.Parts != nil {
		a, b = withParts(a), withParts(b)
		parts := append([]chat.Part(nil), a.Parts...)
		if len(parts) > 0 && len(b.Parts) > 0 && b.Parts[0].Type == "text" && parts[len(parts)-1].Type == "text" {
			parts = append(parts, chat.Part{Type: "text", Text: between})
		}
		a.Parts = append(parts, b.Parts...)
		a.Content = textOf(a.Parts)
	} else {
		a.Content = joinedText(a.Content, b.Content)
	}
	a.Reasoning = joinedText(a.Reasoning, b.Reasoning)
	a.Null = false
	a.ToolCalls = append(a.ToolCalls[:len(a.ToolCalls):len(a.ToolCalls)], b.ToolCalls...)
	return a
}

func joinedText(a, b string) string {
	switch {
	case a == "" || b == "":
		return a + b
	case strings.HasSuffix(a, between) || strings.HasPrefix(b, between):
		return a + b
	}
	return a + between + b
}

// plain returns a message whose parts, if they are all texts, are one text: many templates take no parts.
func plain(m chat.Message) chat.Message {
	if m.Parts == nil || slices.ContainsFunc(m.Parts, func(p chat.Part) bool { return p.Type != "text" }) {
		return m
	}
	m.Content, m.Parts = textOf(m.Parts), nil
	return m
}

func textOf(parts []chat.Part) string {
	var text strings.Builder
	for _, p := range parts {
		text.WriteString(p.Text)
	}
	return text.String()
}

// withParts returns a message whose text is a list of parts.
func withParts(m chat.Message) chat.Message {
	if m.Parts == nil && !m.Null {
		m.Parts = []chat.Part{}
		if m.Content != "" {
			m.Parts = append(m.Parts, chat.Part{Type: "text", Text: m.Content})
		}
	}
	return m
}
