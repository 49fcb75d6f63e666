package parse

import (
	"bytes"

	"github.com/ingotml/ingot/chat/parse/calls"
	"github.com/ingotml/ingot/chat/parse/notation"
)

// ender finds the end of a call's body, byte by byte.
type ender interface {
	// add processes the last byte of body, which is the text since the opening tag and the white space after it.
	add(body []byte) step
	// passed returns where the body ends if a closing tag that add took for a part of it is its end, and the length of
	// that tag; 0, 0 if there is none.
	passed(body []byte) (n, size int)
}

// step is what an ender knows after a byte. The zero value means that the body goes on.
type step struct {
	verdict
	n, size int    // if ended: the length of the body, and of the closing tag behind it
	untied  bool   // if ended: the closing tag is missing
	why     string // if broken: why; "" if the text has not even begun like a call
}

type verdict int8

const (
	goesOn verdict = iota
	ended
	broken // no call begins with the text
)

func endAt(n, size int) step { return step{verdict: ended, n: n, size: size} }

func endBefore(n int) step { return step{verdict: ended, n: n, untied: true} }

func mention() step { return step{verdict: broken} }

func malformed(why string) step { return step{verdict: broken, why: why} }

// skipped records the first closing tag that was considered part of the body.
type skipped struct{ n, size int }

func (s *skipped) passed([]byte) (int, int) { return s.n, s.size }

func (s *skipped) skip(body []byte, tag string) {
	if s.size == 0 {
		s.n, s.size = len(body)-len(tag), len(tag)
	}
}

// notJSON is why a body is broken.
const notJSON = "not valid JSON"

// jsonTag ends a body of objects or lists of JSON, one or more, at its tag. If the tag is missing, other text ends it.
type jsonTag struct {
	skipped // never
	tag     string
	scan    notation.Prefix
	match   int // bytes of the tag
	last    int // end of the last value
}

func jsonTagEnd(tag string) func(offer) ender { return func(offer) ender { return &jsonTag{tag: tag} } }

func (e *jsonTag) add(body []byte) step {
	b, top := body[len(body)-1], e.scan.Top()
	switch {
	case top && b == e.tag[e.match]:
		if e.match++; e.match < len(e.tag) {
			return step{}
		}
		return endAt(len(body)-len(e.tag), len(e.tag))
	case e.match == 0 && e.scan.Add(b):
		if !top && e.scan.Top() {
			e.last = len(body)
		}
		return step{}
	case top && e.last > 0:
		return endBefore(e.last)
	case top:
		return mention()
	}
	return malformed(notJSON)
}

// jsonEnd ends a body that is one object or list of JSON.
type jsonEnd struct {
	skipped // never
	scan    notation.Prefix
}

func (e *jsonEnd) add(body []byte) step {
	top := e.scan.Top()
	switch {
	case !e.scan.Add(body[len(body)-1]) && top:
		return mention()
	case e.scan.Top() && !top:
		return endAt(len(body), 0)
	}
	return step{}
}

// headed ends a body that is a name, other words and marks, and then an object of JSON. With tags, the first of them
// ends the body.
type headed struct {
	skipped          // never
	marks   []string // what may be between the words; all begin with the same byte, as do the tags
	need    int      // how many marks must come before the object; then there may be more than one word
	list    bool     // instead of all that, a list of JSON
	tags    []string

	seen  int  // marks
	at    int  // where a mark or tag may have begun, plus 1; 0: nowhere
	word  int  // end of the last word since the last mark
	gap   bool // white space follows it
	scan  notation.Prefix
	begun bool // the object
	last  int  // its end
}

func (e *headed) add(body []byte) step {
	b := body[len(body)-1]
	switch {
	case e.at > 0:
		return e.mark(body)
	case e.begun && !e.scan.Top():
		if !e.scan.Add(b) {
			return malformed(notJSON)
		}
		if !e.scan.Top() {
			return step{}
		}
		if e.last = len(body); len(e.tags) == 0 {
			return endAt(e.last, 0)
		}
	case b == '{' && !e.begun || b == '[' && e.list && e.word == 0 && e.seen == 0:
		if e.seen < e.need {
			return malformed("no separator before the arguments")
		}
		e.begun = e.scan.Add(b)
	case b == e.first():
		e.at = len(body)
	case e.begun:
		if !isSpace(b) && b != '`' { // what comes after the arguments of a code fence
			return endBefore(e.last)
		}
	case isSpace(b):
		e.gap = e.word > 0
	case len(body) > 2*calls.MaxName || !e.free() && (e.gap || !isNameByte(b)): // a second word, or none that is a name
		return mention()
	default:
		e.word = len(body)
	}
	return step{}
}

// free reports whether any words may come before the object.
func (e *headed) free() bool { return e.need > 0 && e.seen >= e.need }

func (e *headed) first() byte {
	if len(e.marks) > 0 {
		return e.marks[0][0]
	}
	return e.tags[0][0]
}

// mark processes a byte of a mark or tag.
func (e *headed) mark(body []byte) step {
	text := string(body[e.at-1:])
	begun := false
	for _, m := range e.marks {
		if m == text && !e.begun {
			e.seen++
			e.at, e.word, e.gap = 0, 0, false
			return step{}
		}
		begun = begun || !e.begun && len(text) < len(m) && m[:len(text)] == text
	}
	for _, t := range e.tags {
		if t == text {
			return endAt(len(body)-len(t), len(t))
		}
		begun = begun || len(text) < len(t) && t[:len(text)] == text
	}
	switch {
	case begun:
		return step{}
	case e.begun:
		return endBefore(e.last)
	}
	return mention()
}

// isNameByte reports whether b can be in the name of a tool, as far as a single byte tells.
func isNameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-' || b == '.' ||
		b == ':' || b == '/' || b >= 0x80
}

// firstByte returns the first byte that is not white space; 0 if there is none.
func firstByte(body []byte) byte {
	for _, b := range body {
		if !isSpace(b) {
			return b
		}
	}
	return 0
}

// hasSuffix reports whether body ends with tag, which is not empty.
func hasSuffix(body []byte, tag string) bool {
	n := len(body) - len(tag)
	return n >= 0 && body[len(body)-1] == tag[len(tag)-1] && string(body[n:]) == tag
}

// blank reports whether text is white space.
func blank(text []byte) bool { return len(bytes.Trim(text, spaces)) == 0 }
