package parse

import (
	"slices"
	"strings"
)

// tag is a text with an effect in the current state.
type tag struct {
	text  string
	act   func(*machine)
	opens bool // a call
}

// texts returns all tags of the format.
func (m *machine) texts() []string {
	out := slices.Concat(m.f.control, m.f.around, m.f.noise, []string{m.f.frame.Open, m.f.frame.Close, m.f.lead})
	for _, t := range m.thinks {
		out = append(out, t.Open, t.Close)
	}
	for _, form := range m.f.forms {
		out = append(out, form.open, form.tag)
	}
	return out
}

// match finds the tag that equals cand. more reports whether cand is a prefix of a tag.
func (m *machine) match() (found *tag, more bool) {
	m.tags(func(t tag) bool {
		switch {
		case t.text == "" || len(t.text) < len(m.cand) || t.text[:len(m.cand)] != string(m.cand):
		case len(t.text) == len(m.cand):
			found = &t
			return false
		default:
			more = true
		}
		return true
	})
	return found, more
}

// tags yields the tags of the current state.
func (m *machine) tags(yield func(tag) bool) {
	thinking, calls := m.state == inThinking, m.calls()
	each := func(texts []string, act func(*machine)) bool {
		for _, t := range texts {
			if !yield(tag{text: t, act: act}) {
				return false
			}
		}
		return true
	}
	if calls && m.near.quote == 0 {
		opens := func(text string, begin func(m *machine)) bool {
			if m.near.quoted() {
				begin = func(m *machine) { m.quote(text) }
			}
			return yield(tag{text: text, act: begin, opens: true})
		}
		for i := range m.f.forms {
			f := &m.f.forms[i]
			if !opens(f.open, func(m *machine) { m.begin(f) }) {
				return
			}
		}
		if !opens(m.f.lead, (*machine).lead) {
			return
		}
	}
	if m.after {
		for i := range m.f.forms {
			if !yield(tag{text: m.f.forms[i].tag, act: (*machine).drop}) {
				return
			}
		}
	}
	switch {
	case m.after && !each(m.f.noise, (*machine).drop):
	case thinking:
		m.thinkingTags(yield)
	case calls && !each(m.f.around, (*machine).drop):
	case each(m.f.control, (*machine).drop):
		m.contentTags(yield)
	}
}

func (m *machine) thinkingTags(yield func(tag) bool) {
	switch {
	case !yield(tag{text: m.think.Close, act: (*machine).endThinking}):
	case m.name != "" && !yield(tag{text: m.name, act: (*machine).dropName}):
	case m.fresh:
		yield(tag{text: m.think.Open, act: (*machine).beginThinking}) // which the prompt already contains
	}
}

func (m *machine) contentTags(yield func(tag) bool) {
	frame, starts := m.f.frame, m.fresh || m.after
	for _, t := range m.thinks {
		begin := func(m *machine) {
			m.think = t
			m.beginThinking()
		}
		switch {
		case (starts || m.f.anywhere) && !yield(tag{text: t.Open, act: begin}),
			starts && !yield(tag{text: t.Close, act: (*machine).drop}),
			m.lone() && !yield(tag{text: t.Close + "\n", act: (*machine).drop}):
			return
		}
	}
	switch {
	case m.frames > 0:
		if yield(tag{text: frame.Open, act: func(m *machine) { m.nestFrame(frame.Open, 1) }}) {
			yield(tag{text: frame.Close, act: func(m *machine) { m.nestFrame(frame.Close, -1) }})
		}
	case m.fresh && (m.thought || !m.f.framesThought):
		yield(tag{text: frame.Open, act: func(m *machine) { m.frames = 1; m.drop() }})
	}
}

// lone reports whether a tag here that closes thinking was opened nowhere, and so is no text if it has a line of its
// own: the model was to think, and did not say where it began.
func (m *machine) lone() bool {
	return m.state == inContent && !m.thought && m.near.line && !m.near.fence
}

// lead begins a call with the tag that precedes its opening tag.
func (m *machine) lead() {
	m.begin(&m.f.forms[0])
	m.call.open, m.call.leads = []byte(m.f.lead), true
}

// quote takes an opening tag behind a quotation mark for text, and those up to the other one.
func (m *machine) quote(text string) {
	mark := m.near.before[1]
	m.literal([]byte(text))
	m.near.quote = mark
}

func (m *machine) beginThinking() {
	m.cut()
	m.state, m.fresh, m.after, m.name = inThinking, true, false, m.f.name
	m.near.fence = false
	m.cut()
}

func (m *machine) dropName() { m.name = "" }

func (m *machine) endThinking() {
	m.cut()
	m.state, m.fresh, m.after, m.thought = inContent, true, false, true
	m.near.fence = false
	m.cut()
}

// drop ignores a tag that carries no information.
func (m *machine) drop() { m.cut() }

// nestFrame processes a tag of the frame inside of the frame. Only the last closing tag is none of the text.
func (m *machine) nestFrame(text string, by int) {
	if m.frames += by; m.frames == 0 {
		m.drop()
		return
	}
	m.literal([]byte(text))
}

// place is what precedes a place in a text, as far as it tells whether tags there are meant.
type place struct {
	before [2]byte // 0: nothing
	line   bool    // only white space on the line so far
	ticks  int     // backticks at its beginning
	fence  bool    // in a code fence
	quote  byte    // the quotation mark before a quoted call; 0: there is none, or it ended
}

func (p *place) add(b byte) {
	if b == p.quote || b == '\n' && p.before[1] == b { // a quotation is within a paragraph
		p.quote = 0
	}
	p.before[0], p.before[1] = p.before[1], b
	switch {
	case b == '\n':
		p.line, p.ticks = true, 0
	case b == '`' && p.line:
		if p.ticks++; p.ticks == 3 {
			p.fence = !p.fence
		}
	case !isSpace(b):
		p.line = false
	}
}

// reset begins a text after a tag.
func (p *place) reset() { p.before, p.line, p.ticks, p.quote = [2]byte{}, true, 0, 0 }

// quoted reports whether a quotation mark opens here.
func (p *place) quoted() bool {
	const quotes = "`\"'"
	q, before := p.before[1], p.before[0]
	return q != 0 && strings.IndexByte(quotes, q) >= 0 &&
		(before == 0 || isSpace(before) || strings.IndexByte(quotes+"([{<,:;=-/*_", before) >= 0)
}
