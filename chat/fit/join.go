package fit

import (
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
)

// between separates texts that were messages.
const between = "\n\n"

// joined returns a message with the content of others appended.
func joined(first chat.Message, others ...chat.Message) chat.Message {
	j := joiner{first: first}
	for _, m := range others {
		j.add(m)
	}
	return j.message()
}

// joiner appends messages to a first one. A conversation may have any number to be joined, so texts are copied once.
type joiner struct {
	first           chat.Message // as it came
	begun           bool         // others were added
	text, reasoning strings.Builder
	parts           []chat.Part
	hasParts        bool
	calls           []chat.ToolCall
}

func (j *joiner) add(m chat.Message) {
	if !j.begun {
		j.begun = true
		j.text.WriteString(j.first.Content)
		j.reasoning.WriteString(j.first.Reasoning)
		j.parts, j.hasParts = slices.Clone(j.first.Parts), j.first.Parts != nil
		j.calls = slices.Clone(j.first.ToolCalls)
	}
	if !j.hasParts && m.Parts != nil {
		j.hasParts = true
		if j.text.Len() > 0 {
			j.parts = []chat.Part{{Type: "text", Text: j.text.String()}}
		}
	}
	if j.hasParts {
		m = withParts(m)
		if n := len(j.parts); n > 0 && len(m.Parts) > 0 && m.Parts[0].Type == "text" && j.parts[n-1].Type == "text" {
			j.parts = append(j.parts, chat.Part{Type: "text", Text: between})
		}
		j.parts = append(j.parts, m.Parts...)
	} else {
		addText(&j.text, m.Content)
	}
	addText(&j.reasoning, m.Reasoning)
	j.calls = append(j.calls, m.ToolCalls...)
}

// message returns the whole.
func (j *joiner) message() chat.Message {
	m := j.first
	if !j.begun {
		return m
	}
	m.Content, m.Parts = j.text.String(), nil
	if j.hasParts {
		m.Content, m.Parts = textOf(j.parts), j.parts
	}
	m.Reasoning, m.ToolCalls, m.Null = j.reasoning.String(), j.calls, false
	return m
}

// addText appends a paragraph.
func addText(to *strings.Builder, text string) {
	a := to.String()
	if a != "" && text != "" && !strings.HasSuffix(a, between) && !strings.HasPrefix(text, between) {
		to.WriteString(between)
	}
	to.WriteString(text)
}

// turns is a list of messages, to the last of which others can be joined.
type turns struct {
	list []chat.Message
	open *joiner // the last message, if others are joined to it
}

// last returns the last message as it began, or one without a role.
func (t *turns) last() (m chat.Message) {
	if n := len(t.list); n > 0 {
		m = t.list[n-1]
	}
	return m
}

func (t *turns) add(m chat.Message) {
	t.list = append(t.all(), m)
}

// join appends a message to the last one.
func (t *turns) join(m chat.Message) {
	if t.open == nil {
		t.open = &joiner{first: t.last()}
	}
	t.open.add(m)
}

// all returns the messages.
func (t *turns) all() []chat.Message {
	if t.open != nil {
		t.list[len(t.list)-1], t.open = t.open.message(), nil
	}
	return t.list
}
