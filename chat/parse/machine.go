package parse

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
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
	f     *format
	tools tools
	max   int
	think Tags

	state state
	// only white space so far, since the start of the text or of the thinking, or since the end of the thinking
	fresh  bool
	skip   bool   // drop white space, as after a tag
	after  bool   // directly after a call: drop the format's noise
	name   string // the word that may follow the thinking's opening tag and is dropped; "" once it cannot come
	space  []byte // white space held back
	cand   []byte // held back: the beginning of a tag
	call   pending
	simple bool // calls end at the first closing tag, even inside a string

	text  []byte // of the current event
	kind  Kind
	out   []Event
	err   error     // the first error
	first [256]bool // first bytes of all tags
}

// pending is an unfinished call.
type pending struct {
	form  *form
	space []byte // before it
	open  string
	body  []byte
	end   ender
}

func newMachine(f *format, opts Options) *machine {
	m := &machine{f: f, tools: newTools(opts.Tools), max: opts.MaxCall, think: f.think, fresh: true}
	if opts.Think.Close != "" {
		m.think = opts.Think
	}
	if m.max <= 0 {
		m.max = defaultMaxCall
	}
	m.mark(m.think.Open, m.think.Close)
	m.mark(f.control...)
	m.mark(f.noise...)
	for _, form := range f.forms {
		m.mark(form.open)
	}
	if opts.Thinking && m.think.Close != "" {
		m.state, m.skip = inThinking, true
	}
	return m
}

func (m *machine) mark(tags ...string) {
	for _, t := range tags {
		if t != "" {
			m.first[t[0]] = true
		}
	}
}

func (m *machine) Feed(text string) []Event {
	for i := range len(text) {
		m.byte(text[i])
	}
	m.flush(false)
	return m.take()
}

func (m *machine) Close() ([]Event, error) {
	m.close()
	if m.state == inCall {
		m.unfinished()
	}
	m.put(m.cand)
	m.cand = nil
	m.put(m.space)
	m.space = nil
	m.flush(true)
	return m.take(), m.err
}

// close rejects a tag that the end of the text left unfinished.
func (m *machine) close() {
	for len(m.cand) > 0 && m.state != inCall {
		m.reject()
	}
}

func (m *machine) take() []Event {
	out := m.out
	m.out = nil
	return out
}

// byte processes one byte.
func (m *machine) byte(b byte) {
	switch {
	case m.state == inCall:
		m.callByte(b)
		return
	case len(m.cand) == 0 && !m.first[b] && m.name == "":
		m.plain(b)
		return
	}
	m.cand = append(m.cand, b)
	for len(m.cand) > 0 && m.state != inCall {
		t, more := m.match()
		if t != nil {
			m.cand = m.cand[:0]
			t.act(m)
			return
		}
		if more {
			return
		}
		m.reject()
	}
}

// reject treats the first byte of cand as text. The remaining bytes may still begin a tag.
func (m *machine) reject() {
	b := m.cand[0]
	m.cand = m.cand[1:]
	rest := m.cand
	m.cand = nil
	m.plain(b)
	for _, b := range rest {
		m.byte(b)
	}
}

// plain processes a byte of text.
func (m *machine) plain(b byte) {
	if isSpace(b) {
		if m.skip {
			return
		}
		if m.space = append(m.space, b); len(m.space) >= maxSpace {
			m.put(m.space)
			m.space = m.space[:0]
		}
		return
	}
	if m.bare(b) {
		return
	}
	m.put(m.space)
	m.space = m.space[:0]
	m.put([]byte{b})
	m.fresh, m.skip, m.after, m.name = false, false, false, ""
}

// bare begins a call without an opening tag: JSON at the start of the response, or directly after such a call.
func (m *machine) bare(b byte) bool {
	if m.f.bare == nil || b != '{' && b != '[' || m.state != inContent || !(m.fresh || m.after) || len(m.tools) == 0 {
		return false
	}
	m.begin(m.f.bare, "")
	m.callByte(b)
	return true
}

func (m *machine) begin(f *form, open string) {
	m.call = pending{form: f, open: open, end: f.end(), space: bytes.Clone(m.space)}
	m.space = m.space[:0]
	m.state = inCall
}

func (m *machine) callByte(b byte) {
	c := &m.call
	c.body = append(c.body, b)
	if n, ended := c.end.add(c.body, m.simple); ended {
		if at, size := c.end.passed(); at > 0 {
			if _, err := c.form.parse(m.tools, string(c.body[:n]), true); err != nil {
				m.split(at, size)
				return
			}
		}
		m.finish(string(c.body[:n]), "", string(c.body[n:]), true)
		return
	}
	if partialRune(c.body) > 0 {
		return
	}
	if len(c.body) >= m.max {
		m.giveUp(fmt.Errorf("%w: longer than %d bytes", ErrCall, m.max))
	} else if why := c.end.rejected(); why != "" {
		m.giveUp(fmt.Errorf("%w: %s", ErrCall, why))
	}
}

// finish ends a call with this body. rest is text after the call that was already read.
func (m *machine) finish(body, rest, closing string, complete bool) {
	c := m.call
	m.call = pending{}
	m.state, m.fresh = inContent, false
	calls, err := c.form.parse(m.tools, body, complete)
	switch {
	case err == errNoCall:
		m.put(c.space)
		m.put([]byte(c.open + body + closing))
		m.skip, m.after = false, false
	case err != nil:
		m.damaged(string(c.space)+c.open+body+closing, err)
		m.skip, m.after = false, false
	default:
		m.flush(true)
		for _, call := range calls {
			m.out = append(m.out, Event{Kind: Call, Call: call})
		}
		m.skip, m.after = true, true
	}
	for i := range len(rest) {
		m.byte(rest[i])
	}
}

// unfinished handles a call that the end of the text interrupts.
func (m *machine) unfinished() {
	for m.state == inCall {
		c := m.call
		if c.form.untilEnd != nil && c.form.untilEnd(c.body) {
			m.finish(string(c.body), "", "", true)
			continue
		}
		if at, size := c.end.passed(); at > 0 {
			m.split(at, size)
			continue
		}
		body := strings.TrimRight(cutPartial(string(c.body), c.form.tag), spaces)
		calls, err := c.form.parse(m.tools, body, false)
		if err == nil && len(calls) > 0 {
			m.finish(body, "", "", false)
			continue
		}
		if err == errNoCall {
			m.finish(string(c.body), "", "", false)
			continue
		}
		m.giveUp(fmt.Errorf("%w: the text ends inside the call", ErrIncomplete))
	}
	m.close()
}

// split ends a call at a closing tag that was wrongly considered part of a string, and parses the text after it again.
// From then on the first closing tag ends a call, so no text is parsed a third time.
func (m *machine) split(at, size int) {
	body, rest := string(m.call.body[:at-size]), string(m.call.body[at:])
	m.simple = true
	m.finish(body, rest, m.call.form.tag, true)
}

// giveUp emits the text of a call as a damaged event.
func (m *machine) giveUp(err error) {
	if at, size := m.call.end.passed(); at > 0 {
		m.split(at, size)
		return
	}
	c := m.call
	m.call = pending{}
	m.state, m.fresh, m.skip, m.after = inContent, false, false, false
	m.damaged(string(c.space)+c.open+string(c.body), err)
}

func (m *machine) damaged(text string, err error) {
	m.flush(true)
	if m.err == nil {
		m.err = err
	}
	m.out = append(m.out, Event{Kind: Damaged, Text: text, Err: err})
}

// put appends text to the event of the current state.
func (m *machine) put(text []byte) {
	if len(text) == 0 {
		return
	}
	kind := Content
	if m.state == inThinking {
		kind = Thinking
	}
	if kind != m.kind {
		m.flush(true)
		m.kind = kind
	}
	m.text = append(m.text, text...)
}

// flush emits the collected text. An incomplete character at its end stays, unless all is set.
func (m *machine) flush(all bool) {
	n := len(m.text)
	if !all {
		n -= partialRune(m.text)
	}
	if n > 0 {
		m.out = append(m.out, Event{Kind: m.kind, Text: string(m.text[:n])})
		m.text = append(m.text[:0], m.text[n:]...)
	}
}

// partialRune returns the length of the incomplete character at the end of text.
func partialRune(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}

const spaces = " \t\n\r\v\f"

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
