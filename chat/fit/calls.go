package fit

import (
	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
)

// fitCalls adapts tool calls and their results.
func (c Calls) fitCalls(list []chat.Message) []chat.Message {
	var out []chat.Message
	names := map[string]string{} // of calls, by id
	for i := 0; i < len(list); i++ {
		m := list[i]
		switch {
		case isModels(m) && len(m.ToolCalls) > 0:
			n := i + 1
			for n < len(list) && list[n].Role == roleTool {
				n++
			}
			for _, call := range m.ToolCalls {
				names[call.ID] = call.Name
			}
			out = append(out, c.round(m, named(list[i+1:n], names))...)
			i = n - 1
		case m.Role == roleTool && !c.Unnamed:
			out = append(out, asText(named([]chat.Message{m}, names)[0]))
		default:
			out = append(out, m)
		}
	}
	return out
}

// named returns results with the names of their calls.
func named(results []chat.Message, names map[string]string) []chat.Message {
	var out []chat.Message
	for _, r := range results {
		if r.Name == "" {
			r.Name = names[r.ToolCallID]
		}
		out = append(out, r)
	}
	return out
}

// round returns the messages of calls and their results.
func (c Calls) round(m chat.Message, results []chat.Message) []chat.Message {
	if !c.Shown {
		return c.textRound(m, results)
	}
	var out []chat.Message
	if (m.Content != "" || len(m.Parts) > 0) && !c.Beside {
		text := m
		text.ToolCalls = nil
		m.Content, m.Parts, m.Reasoning = "", nil, ""
		out = append(out, text)
	}
	if !c.Open && len(results) == 0 {
		for _, call := range m.ToolCalls {
			results = append(results, chat.Message{Role: roleTool, Name: call.Name, ToolCallID: call.ID, At: m.At})
		}
	}
	round := append([]chat.Message{m}, results...)
	if len(m.ToolCalls) > 1 && !c.Several {
		round = OneByOne(m, results)
	}
	for _, x := range round {
		out = append(out, c.formed(x))
	}
	return out
}

// textRound returns calls and results as texts, for templates that do not show them.
func (c Calls) textRound(m chat.Message, results []chat.Message) []chat.Message {
	m.Null = false
	text := joiner{first: m}
	text.first.ToolCalls = nil
	for _, call := range m.ToolCalls {
		d := jinja.NewDict()
		d.Put("name", call.Name)
		d.Put("arguments", arguments(call))
		if json, err := jinja.EncodeJSON(d); err == nil { // values that a request decoded can be encoded
			text.add(chat.Message{Content: json})
		}
	}
	out := []chat.Message{text.message()}
	for _, r := range results {
		if !c.Results {
			r = asText(r)
		}
		out = append(out, r)
	}
	return out
}

// asText returns a result as a user turn.
func asText(r chat.Message) chat.Message {
	head := chat.Message{Role: roleUser, Content: "Result of the tool:", At: r.At}
	if r.Name != "" {
		head.Content = "Result of " + r.Name + ":"
	}
	return joined(head, chat.Message{Content: r.Content, Parts: r.Parts})
}

// OneByOne returns a message for each call of m, and behind it the results that name the call. Results that name none
// are those of the calls in order, and those left over are those of the last one.
func OneByOne(m chat.Message, results []chat.Message) []chat.Message {
	last := len(m.ToolCalls) - 1
	byID := map[string]int{} // the first call with an id
	for i, call := range m.ToolCalls {
		if _, known := byID[call.ID]; !known && call.ID != "" {
			byID[call.ID] = i
		}
	}
	of := make([][]chat.Message, len(m.ToolCalls)) // results, by call
	for j, r := range results {
		i, named := byID[r.ToolCallID]
		if !named {
			i = last
		}
		if j < i && (r.ToolCallID == "" || m.ToolCalls[j].ID == "") {
			i = j
		}
		of[i] = append(of[i], r)
	}
	var out []chat.Message
	for i, call := range m.ToolCalls {
		one := m
		one.ToolCalls = []chat.ToolCall{call}
		if i > 0 {
			one.Content, one.Parts, one.Reasoning = "", nil, ""
		}
		out = append(append(out, one), of[i]...)
	}
	return out
}

// afterResults adapts user turns that follow a result.
func (c Calls) afterResults(list []chat.Message) []chat.Message {
	if c.UserAfter {
		return list
	}
	var out turns
	for _, m := range list {
		if m.Role == roleUser && out.last().Role == roleTool {
			if !c.Gap {
				out.join(m)
				continue
			}
			out.add(chat.Message{Role: chat.Assistant, At: m.At})
		}
		out.add(m)
	}
	return out.all()
}
