package parse

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/chat/parse/calls"
)

// elements are the tags of calls that are elements with a name, which contain a parameter element for each argument.
type elements struct {
	open, end       string // the tags around all calls; e.call and "" if there are none
	call, callEnd   string // <function= or <invoke, and the closing tag; a name or attributes and > follow the first
	param, paramEnd string
	name            func(head string) string // from the text between an opening tag and its >
	arg             func(head, value string) arg
	strict          bool // at the end of the text, no closing tag may be missing
}

// elementScan follows the text of calls byte by byte. A value may contain all the tags: quoted calls are skipped, and a
// closing tag counts only if another element of the call follows, or its end.
type elementScan struct {
	e *elements
	o offer

	level     level
	at        int    // where a tag, a head or a value begins
	from      int    // where the value begins
	head      string // of the parameter
	valueEnd  int    // where the value ends, if its closing tag counts
	nested    [3]int // opening tags inside the value that are not closed: e.open, e.call, e.param
	callEnded int    // end of the last e.callEnd inside the value; 0: none
	last      int    // end of the last complete call; 0: none
	calls     []rawCall
	ends      [2]skipped // the first and the last place in a value where all calls may have ended
}

// offer says which calls count.
type offer struct {
	tools tools
	known bool // only those of offered tools
}

func (o offer) accepts(name string) bool {
	_, ok := o.tools[name]
	return ok || !o.known
}

func (e *elements) scan(o offer) *elementScan {
	s := &elementScan{e: e, o: o}
	if e.open == e.call {
		s.level = inHead
	}
	return s
}

// rawCall is a call and its arguments.
type rawCall struct {
	name  string
	args  []arg
	given map[string]bool // keys of args
}

// level is where in the calls a text is.
type level int

const (
	between    level = iota // outside of all elements
	inHead                  // after e.call
	inElement               // between the parameters of a call
	inKey                   // after e.param
	inValue                 // after the > of a parameter
	afterValue              // after e.paramEnd, which may be a part of the value
)

// Indices of nested.
const (
	nestedOpen = iota
	nestedCall
	nestedParam
)

// passed implements [ender]. The last place counts if only white space follows.
func (s *elementScan) passed(body []byte) (int, int) {
	if last := s.ends[1]; blank(body[last.n+last.size:]) {
		return last.n, last.size
	}
	return s.ends[0].n, s.ends[0].size
}

// add implements [ender].
func (s *elementScan) add(body []byte) step {
	b := body[len(body)-1]
	switch s.level {
	case inHead, inKey:
		return s.inTag(body, b)
	case inValue:
		return s.inText(body, b)
	}
	if s.at == len(body)-1 && isSpace(b) {
		s.at++
		return step{}
	}
	return s.structure(body)
}

// structure processes a byte where only tags may be.
func (s *elementScan) structure(body []byte) step {
	e, text := s.e, string(body[s.at:])
	begun := false
	for _, t := range s.expected() {
		if t == "" || len(t) < len(text) || t[:len(text)] != text {
			continue
		}
		if begun = true; len(text) < len(t) {
			continue
		}
		if s.level == afterValue && t != e.paramEnd {
			s.argument(string(body[s.from:s.valueEnd]))
		}
		n := len(body) - len(t)
		switch s.at = len(body); t {
		case e.call:
			s.level = inHead
		case e.param:
			s.level = inKey
		case e.callEnd:
			if s.level, s.last = between, len(body); e.end == "" {
				return endAt(n, len(t))
			}
		case e.end:
			return endAt(n, len(t))
		}
		return step{}
	}
	switch {
	case begun:
		return step{}
	case s.level == afterValue: // the closing tag is a part of the value
		s.level = inValue
		return s.inText(body, body[len(body)-1])
	case s.level == between && s.last > 0:
		return endBefore(s.last)
	case len(s.calls) == 0 || len(s.calls) == 1 && s.last == 0 && len(s.calls[0].args) == 0:
		return mention()
	}
	return malformed("text between the parameters of a call")
}

// expected returns the tags that may come next.
func (s *elementScan) expected() [4]string {
	switch e := s.e; {
	case s.level == between:
		return [4]string{e.call, e.end}
	case s.level == inElement:
		return [4]string{e.param, e.callEnd, e.end}
	default:
		return [4]string{e.param, e.callEnd, e.end, e.paramEnd}
	}
}

// inTag processes a byte between an opening tag and its >.
func (s *elementScan) inTag(body []byte, b byte) step {
	head := string(body[s.at : len(body)-1])
	switch {
	case b == '<' || len(head) > calls.MaxName:
		return s.unnamed()
	case b != '>':
		return step{}
	}
	name := s.e.name(head)
	s.at = len(body)
	switch {
	case name == "":
		return s.unnamed()
	case s.level == inKey:
		s.level, s.from, s.head, s.nested, s.callEnded = inValue, s.at, head, [3]int{}, 0
	case !s.o.accepts(name):
		return mention()
	default:
		s.calls, s.level = append(s.calls, rawCall{name: name, given: map[string]bool{}}), inElement
	}
	return step{}
}

func (s *elementScan) unnamed() step {
	if len(s.calls) == 0 {
		return mention()
	}
	return malformed("an element has no name")
}

// inText processes a byte of a value.
func (s *elementScan) inText(body []byte, b byte) step {
	e := s.e
	if b != '>' && b != e.call[len(e.call)-1] {
		return step{}
	}
	switch {
	case hasSuffix(body, e.call):
		s.nested[nestedCall]++
	case hasSuffix(body, e.param):
		if s.nested[nestedCall] > 0 {
			s.nested[nestedParam]++
		}
	case hasSuffix(body, e.paramEnd):
		if s.nested[nestedParam] > 0 {
			s.nested[nestedParam]--
			break
		}
		s.level, s.valueEnd, s.at = afterValue, len(body)-len(e.paramEnd), len(body)
	case hasSuffix(body, e.callEnd):
		if s.callEnded = len(body); s.nested[nestedCall] > 0 {
			s.nested[nestedCall]--
			s.nested[nestedParam] = 0
		}
		if e.end == "" {
			s.mayEnd(len(body)-len(e.callEnd), len(e.callEnd))
		}
	case hasSuffix(body, e.open):
		if end := s.ends[1]; end.size > 0 && blank(body[end.n+end.size:len(body)-len(e.open)]) {
			return endAt(end.n, end.size) // other calls follow: a parameter was not closed
		}
		s.nested[nestedOpen]++
	case e.end != "" && hasSuffix(body, e.end):
		n := len(body) - len(e.end)
		if s.nested[nestedOpen] > 0 {
			s.nested = [3]int{s.nested[nestedOpen] - 1}
		} else if s.callEnded > 0 && blank(body[s.callEnded:n]) {
			s.mayEnd(n, len(e.end))
		}
	}
	return step{}
}

func (s *elementScan) mayEnd(n, size int) {
	if s.ends[1] = (skipped{n, size}); s.ends[0].size == 0 {
		s.ends[0] = s.ends[1]
	}
}

// argument adds a parameter whose text ended. If closing tags are missing in it, it adds all of them.
func (s *elementScan) argument(text string) {
	c := &s.calls[len(s.calls)-1]
	for {
		value, head, rest, found := s.unclosed(text)
		a := s.e.arg(s.head, value)
		c.args = append(c.args, a)
		c.given[a.key] = true
		if !found {
			return
		}
		s.head, text = head, rest
	}
}

// unclosed splits the text of a parameter before the next one, if it begins a line and can be an argument of the call.
func (s *elementScan) unclosed(text string) (value, head, rest string, found bool) {
	e, c := s.e, s.calls[len(s.calls)-1]
	before, after, ok := strings.Cut(text, "\n"+e.param)
	head, rest, closed := strings.Cut(after, ">")
	if !ok || !closed || strings.Contains(before, e.call) || strings.ContainsAny(head, "<\n") {
		return text, "", "", false
	}
	key := e.arg(head, "").key
	types := s.o.tools[c.name].types
	if _, known := types[key]; key == "" || len(types) > 0 && !known || key == e.arg(s.head, "").key || c.given[key] {
		return text, "", "", false
	}
	return before, head, rest, true
}

// parse returns the calls of a body.
func (e *elements) parse(t tools, body string, complete bool) ([]ToolCall, error) {
	s, kind := e.scan(offer{tools: t}), ErrCall
	if !complete {
		kind = ErrIncomplete
	}
	text := []byte(body)
	for i := range text {
		if st := s.add(text[:i+1]); st.verdict != goesOn && !(st.verdict == ended && blank(text[st.n+st.size:])) {
			return nil, fmt.Errorf("%w: %s", kind, cmp.Or(st.why, "it is not a call"))
		}
	}
	if err := s.finish(body, complete); err != nil {
		return nil, fmt.Errorf("%w: %w", kind, err)
	}
	var calls []ToolCall
	for i, c := range s.calls {
		if !complete && (e.strict || i == len(s.calls)-1 && s.level != between) {
			if err := t.checkTruncated(c.name, c.args); err != nil {
				return nil, err
			}
		}
		call, err := t.call(c.name, c.args)
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	return calls, nil
}

// finish ends the text. If it is complete, closing tags may be missing.
func (s *elementScan) finish(body string, complete bool) error {
	e := s.e
	switch s.level {
	case inHead, inKey:
		return errors.New("an element is not closed")
	case inValue:
		if !complete {
			return errors.New("a parameter is not closed")
		}
		text := strings.TrimSuffix(strings.TrimRight(body[s.from:], spaces), e.callEnd)
		if cut, ok := strings.CutSuffix(strings.TrimRight(text, spaces), e.paramEnd); ok {
			text = cut
		}
		s.argument(text)
	case afterValue:
		s.argument(body[s.from:s.valueEnd])
	}
	switch {
	case len(s.calls) == 0:
		return errors.New("no calls")
	case e.strict && !complete && s.level != between:
		return errors.New("an element is not closed")
	}
	return nil
}
