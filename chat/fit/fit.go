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
	var out turns
	var held *joiner // a system text for the next user turn
	for i, m := range list {
		leading := len(out.list) == 0 || len(out.list) == 1 && out.list[0].Role == roleSystem
		switch {
		case m.Role == roleSystem && where != Nowhere && leading && held == nil:
			if len(out.list) == 1 {
				out.join(m)
			} else {
				out.add(m)
			}
			continue
		case m.Role == roleSystem && where == Anywhere:
			out.add(m)
			continue
		case m.Role == roleSystem:
			m.Role = roleUser
			if held == nil {
				held = &joiner{first: m}
			} else {
				held.add(m)
			}
			if i < len(list)-1 {
				continue
			}
		case held == nil:
			out.add(m)
			continue
		case m.Role == roleUser:
			held.add(m)
			text := held.message()
			text.At = m.At
			out.add(text)
			held = nil
			continue
		}
		// No user turn follows: the text ends the one before, or is one of its own.
		if out.last().Role == roleUser {
			out.join(held.message())
		} else {
			out.add(held.message())
		}
		held = nil
		if m.Role != roleUser {
			out.add(m)
		}
	}
	return out.all()
}

// alternating joins turns of the same side where the template demands that turns alternate.
func (s *Shape) alternating(list []chat.Message) []chat.Message {
	var out turns
	for _, m := range list {
		if last := out.last(); last.Role == m.Role && len(out.list) > 0 {
			text := len(last.ToolCalls) == 0 && len(m.ToolCalls) == 0
			if m.Role == roleUser && !s.Users || isModels(m) && text && !s.Assistants {
				out.join(m)
				continue
			}
		}
		out.add(m)
	}
	return out.all()
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
	hasUser := slices.ContainsFunc(list, func(m chat.Message) bool { return m.Role == roleUser })
	if len(list) > 0 && (hasUser || s.NoUser) {
		switch first := list[at]; {
		case first.Role == roleUser, first.Role == roleTool && hasUser:
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
