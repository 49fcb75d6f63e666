package parse

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat/parse/notation"
)

// maxSpace bounds the white space that is held back, in bytes.
const maxSpace = 64 << 10

type state int

const (
	inContent state = iota
	inThinking
	inCall
)

// machine is a Parser. It processes single bytes, so the events cannot depend on how the text is split.
type machine struct {
	f      *format
	offer  offer
	max    int
	think  Tags   // of the thinking; outside of it, those that the template has
	thinks []Tags // all tags that may open it

	state state
	// only white space so far, since the start of the text or of the thinking, or since the end of the thinking
	fresh   bool
	skip    bool   // drop white space, as after a tag
	after   bool   // directly after a call: drop the format's noise
	thought bool   // thinking has ended
	frames  int    // tags of the format's frame that are open
	name    string // the word that may follow the thinking's opening tag and is dropped; "" once it cannot come
	space   []byte // white space held back
	cand    []byte // held back: the beginning of a tag
	held    *tag   // cand is this tag, unless a quote follows
	near    place
	call    pending
	hasty   []ToolCall // calls before the end of the thinking

	backlog
	writer
	first [256]bool // first bytes of all tags
}

// pending is an unfinished call.
type pending struct {
	form   *form
	offer  offer
	within state  // where it began
	open   []byte // the opening tag, and the white space after it
	leads  bool   // open is the format's lead: the opening tag must follow
	body   []byte
	end    ender
	failed *step // no call begins with the body; it may still repeat the opening tag
}

func newMachine(f *format, opts Options) *machine {
	m := &machine{f: f, offer: offer{tools: newTools(opts.Tools)}, max: opts.MaxCall, think: f.think, fresh: true}
	if m.think.Close != "" {
		m.thinks = []Tags{m.think}
	}
	if opts.Think.Close != "" && opts.Think != m.think {
		m.think, m.thinks = opts.Think, append(m.thinks, opts.Think)
	}
	if m.max <= 0 {
		m.max = defaultMaxCall
	}
	for _, t := range m.texts() {
		if t != "" {
			m.first[t[0]] = true
		}
	}
	if opts.Thinking && m.think.Close != "" {
		m.state, m.skip = inThinking, true
	}
	return m
}

// Feed implements [Parser].
func (m *machine) Feed(text string) []Event {
	m.feed(text, m.byte)
	return m.take()
}

// Close implements [Parser].
func (m *machine) Close() ([]Event, error) {
	m.endTags()
	for m.state == inCall {
		m.unfinished()
		m.each(m.byte)
		m.endTags()
	}
	m.endSpace()
	m.flush(true)
	return m.take(), m.err
}

// endTags decides about tags that the end of the text leaves open.
func (m *machine) endTags() {
	for len(m.cand) > 0 && m.state != inCall {
		switch held := m.held; {
		case held != nil:
			m.cand, m.held = nil, nil
			held.act(m)
		case m.lone() && slices.ContainsFunc(m.thinks, func(t Tags) bool { return t.Close == string(m.cand) }):
			m.cand = nil
			m.drop()
		default:
			m.reject()
		}
		m.each(m.byte)
	}
}

// byte processes one byte.
func (m *machine) byte(b byte) {
	if m.state == inCall {
		m.callByte(b)
		return
	}
	if held := m.held; held != nil {
		text := m.cand
		m.cand, m.held = nil, nil
		if b == m.near.before[1] {
			m.literal(text)
		} else {
			held.act(m)
		}
	}
	if len(m.cand) == 0 && !m.first[b] && m.name == "" {
		m.plain(b)
		return
	}
	m.cand = append(m.cand, b)
	t, more := m.match()
	switch {
	case t != nil && !t.opens && m.near.quoted():
		m.held = t
	case t != nil:
		m.cand = nil
		t.act(m)
	case !more:
		m.reject()
	}
}

// reject treats the first byte of cand as text. The remaining bytes may still begin a tag.
func (m *machine) reject() {
	b, rest := m.cand[0], m.cand[1:]
	m.cand = nil
	m.todo = append(m.todo, rest)
	m.plain(b)
}

// plain processes a byte of text.
func (m *machine) plain(b byte) {
	bare := m.f.bare
	if bare != nil && strings.IndexByte(bare.first, b) >= 0 && m.state == inContent && (m.fresh || m.after) && m.calls() {
		m.begin(bare)
		m.callByte(b)
		return
	}
	m.literal([]byte{b})
}

// literal adds text in which no tags are looked for.
func (m *machine) literal(text []byte) {
	for i, b := range text {
		m.near.add(b)
		if isSpace(b) {
			if m.space = append(m.space, b); len(m.space) >= maxSpace {
				skip := m.skip
				m.endSpace()
				m.skip = skip
			}
			continue
		}
		m.endSpace()
		m.put(m.kindNow(), text[i:i+1])
		m.fresh, m.after, m.name = false, false, ""
	}
}

// endSpace ends white space: it is text, or next to a dropped tag.
func (m *machine) endSpace() {
	if m.skip {
		m.part(m.kindNow(), m.space)
	} else {
		m.put(m.kindNow(), m.space)
	}
	m.skip, m.space = false, m.space[:0]
}

// cut notes that a tag is dropped here, with the white space before it.
func (m *machine) cut() {
	m.part(m.kindNow(), m.space)
	m.skip, m.space = true, m.space[:0]
	m.near.reset()
}

func (m *machine) kindNow() Kind {
	if m.state == inThinking {
		return Thinking
	}
	return Content
}

// calls reports whether text may be a call.
func (m *machine) calls() bool { return len(m.offer.tools) > 0 && !m.tired() }

func (m *machine) begin(f *form) {
	o := m.offer
	o.known = m.state == inThinking || m.near.fence // an example, perhaps
	m.call = pending{form: f, offer: o, within: m.state, open: []byte(f.open), end: f.end(o)}
	m.state = inCall
}

func (m *machine) callByte(b byte) {
	c := &m.call
	if len(c.body) == 0 && isSpace(b) && c.form.open != "" {
		if c.open = append(c.open, b); len(c.open) >= m.max {
			m.giveUp("")
		}
		return
	}
	c.body = append(c.body, b)
	if c.failed == nil && !c.leads {
		st := c.end.add(c.body)
		switch st.verdict {
		case ended:
			c.offer.known = c.offer.known || st.untied
			m.finish(st.n, st.size, true)
			return
		case broken:
			c.failed = &st
		}
	}
	repeated := c.form.open != "" && len(c.body) <= len(c.form.open) && c.form.open[:len(c.body)] == string(c.body)
	switch {
	case repeated && len(c.body) == len(c.form.open):
		c.open, c.body, c.failed, c.end = append(c.open, c.body...), nil, nil, c.form.end(c.offer)
		c.leads = false
	case c.leads && !repeated:
		m.giveUp("")
	case c.failed != nil && !repeated:
		m.giveUp(c.failed.why)
	case c.within == inThinking && hasSuffix(c.body, m.think.Close):
		m.giveUp("")
	case len(c.body) >= m.max && partialRune(c.body) == 0:
		m.giveUp(fmt.Sprintf("longer than %d bytes", m.max))
	}
}

// finish ends a call with the first n bytes of its body, which a closing tag of that size follows.
func (m *machine) finish(n, size int, complete bool) {
	c := m.call
	body, rest := string(c.body[:n]), c.body[n+size:]
	calls, err := c.form.parse(m.offer.tools, body, complete)
	for _, call := range calls {
		if err == nil && !c.offer.accepts(call.Name) {
			err = errNoCall
		}
	}
	switch {
	case err == errNoCall || err != nil && c.within == inThinking:
		m.restore("")
		return
	case err != nil:
		m.damage(c.body[:n+size], err)
	default:
		m.state, m.call = c.within, pending{}
		m.cut()
		m.writer.call(m.once(calls))
		m.after, m.fresh = true, false
	}
	m.repeat(rest)
}

// once drops calls that repeat, after the thinking, one that came before its end.
func (m *machine) once(calls []ToolCall) (out []ToolCall) {
	for _, c := range calls {
		same := func(d ToolCall) bool { return d.Name == c.Name && bytes.Equal(d.Arguments, c.Arguments) }
		switch i := slices.IndexFunc(m.hasty, same); {
		case m.state == inThinking:
			m.hasty = append(m.hasty, c)
		case i >= 0:
			m.hasty = slices.Delete(m.hasty, i, i+1)
			continue
		}
		out = append(out, c)
	}
	return out
}

// giveUp ends a call that is none, unless it ended earlier. why is "" if its text has not even begun like one.
func (m *machine) giveUp(why string) {
	if n, size := m.call.end.passed(m.call.body); size > 0 {
		m.finish(n, size, true)
		return
	}
	m.restore(why)
}

// restore takes the opening tag of a call for text, and processes the text after it again.
func (m *machine) restore(why string) {
	c := m.call
	if why != "" && c.within == inContent && c.form.open != "" {
		m.damage(nil, fmt.Errorf("%w: %s", ErrCall, why))
		m.repeat(c.body)
		return
	}
	m.state, m.call = c.within, pending{}
	if c.form.open == "" {
		c.open, c.body = c.body[:1], c.body[1:] // it would begin the call again
	}
	m.literal(c.open)
	m.repeat(c.body)
}

// damage emits a call with that body as damaged.
func (m *machine) damage(body []byte, err error) {
	c := m.call
	m.state, m.call = c.within, pending{}
	text := string(c.open) + string(body)
	if !m.skip {
		text = string(m.space) + text
		m.space = m.space[:0]
	}
	m.endSpace()
	m.damaged(text, err)
	m.fresh, m.after = false, false
	m.near.reset()
}

// unfinished handles a call that the end of the text interrupts.
func (m *machine) unfinished() {
	c := m.call
	if c.failed != nil {
		m.giveUp(c.failed.why)
		return
	}
	if c.leads {
		m.restore("")
		return
	}
	if c.form.untilEnd != nil && c.form.untilEnd(c.body) {
		m.finish(len(c.body), 0, true)
		return
	}
	if n, size := c.end.passed(c.body); size > 0 {
		m.finish(n, size, true)
		return
	}
	body := strings.TrimRight(cutPartial(string(c.body), c.form.tag), spaces)
	calls, err := c.form.parse(m.offer.tools, body, false)
	switch {
	case err == nil && len(calls) > 0:
		c.body = []byte(body)
		m.call = c
		m.finish(len(body), 0, false)
	case err == errNoCall || c.within == inThinking:
		m.state, m.call = c.within, pending{}
		m.literal(slices.Concat(c.open, c.body))
	default:
		m.damage(c.body, fmt.Errorf("%w: the text ends inside the call", ErrIncomplete))
	}
}

const spaces = notation.Spaces

func isSpace(b byte) bool { return strings.IndexByte(spaces, b) >= 0 }

// cutPartial removes the longest prefix of tag from the end of text.
func cutPartial(text, tag string) string {
	for n := min(len(tag), len(text)); n > 0; n-- {
		if strings.HasSuffix(text, tag[:n]) {
			return text[:len(text)-n]
		}
	}
	return text
}
