package parse

import (
	"bytes"
	"strings"
)

// ender finds the end of a call's body.
type ender interface {
	// add processes the last byte of body, which is the text since the opening tag. At the end of the call it returns the
	// length of the body. If simple, any closing tag ends the call.
	add(body []byte, simple bool) (n int, ended bool)
	// passed returns the end and length of the first closing tag that was considered part of the body; 0 if there is none.
	passed() (at, size int)
	// rejected returns why the text cannot become a body; "" if it still can.
	rejected() string
}

// skipped records the first closing tag that was considered part of the body.
type skipped struct{ at, size int }

func (s *skipped) passed() (int, int) { return s.at, s.size }
func (s *skipped) rejected() string   { return "" }

func (s *skipped) skip(body []byte, tag string) {
	if s.at == 0 {
		s.at, s.size = len(body), len(tag)
	}
}

// tagEnd ends a body at the first of its tags.
type tagEnd struct {
	skipped
	tags []string
}

func tagsEnd(tags ...string) func() ender { return func() ender { return &tagEnd{tags: tags} } }

func (e *tagEnd) add(body []byte, _ bool) (int, bool) {
	for _, t := range e.tags {
		if hasSuffix(body, t) {
			return len(body) - len(t), true
		}
	}
	return 0, false
}

func hasSuffix(body []byte, tag string) bool {
	n := len(body) - len(tag)
	return n >= 0 && body[len(body)-1] == tag[len(tag)-1] && string(body[n:]) == tag
}

// jsonScan tracks strings and nesting of JSON byte by byte.
type jsonScan struct {
	str, esc, begun bool
	depth           int
}

// add reports whether b ends an object or list.
func (s *jsonScan) add(b byte) bool {
	switch {
	case s.esc:
		s.esc = false
	case s.str:
		s.esc, s.str = b == '\\', b != '"'
	case b == '"':
		s.str = true
	case b == '{' || b == '[':
		s.depth++
		s.begun = true
	case b == '}' || b == ']':
		s.depth--
		return s.begun && s.depth <= 0
	}
	return false
}

// jsonTag ends a JSON body at its tag, unless the tag is inside a string.
type jsonTag struct {
	skipped
	scan jsonScan
	tag  string
}

func jsonTagEnd(tag string) func() ender { return func() ender { return &jsonTag{tag: tag} } }

func (e *jsonTag) add(body []byte, simple bool) (int, bool) {
	e.scan.add(body[len(body)-1])
	if !hasSuffix(body, e.tag) {
		return 0, false
	}
	if e.scan.str && !simple {
		e.skip(body, e.tag)
		return 0, false
	}
	return len(body) - len(e.tag), true
}

// callEnd ends the body of <tool_call>, or of another tag, unless the tag is inside a JSON string or a parameter.
type callEnd struct {
	skipped
	tag    string
	scan   jsonScan
	kind   byte // the first byte that is not white space
	inside bool // in a string or parameter
}

func functionsEnd(tag string) func() ender { return func() ender { return &callEnd{tag: tag} } }

func (e *callEnd) add(body []byte, simple bool) (int, bool) {
	b := body[len(body)-1]
	if e.kind == 0 && !isSpace(b) {
		e.kind = b
	}
	switch e.kind {
	case '{', '[':
		e.scan.add(b)
		e.inside = e.scan.str
	case '<':
		switch {
		case b == '=' && hasSuffix(body, "<parameter="):
			e.inside = true
		case b == '>' && (hasSuffix(body, "</parameter>") || hasSuffix(body, "</function>")):
			e.inside = false
		}
	}
	if b != '>' || !hasSuffix(body, e.tag) {
		return 0, false
	}
	if e.inside && !simple {
		e.skip(body, e.tag)
		return 0, false
	}
	return len(body) - len(e.tag), true
}

// jsonEnd ends a body that is one JSON object or list.
type jsonEnd struct {
	skipped
	scan jsonScan
}

func (e *jsonEnd) add(body []byte, _ bool) (int, bool) {
	return len(body), e.scan.add(body[len(body)-1])
}

// gemmaEnd ends call:NAME{...} after its last brace, or at the closing tag if braces are missing.
type gemmaEnd struct {
	skipped
	scan   jsonScan
	quoted bool
}

const (
	gemmaClose = "<tool_call|>"
	gemmaQuote = `<|"|>`
)

func (e *gemmaEnd) add(body []byte, simple bool) (int, bool) {
	b := body[len(body)-1]
	switch {
	case b == '>' && hasSuffix(body, gemmaClose):
		if (e.quoted || e.scan.str) && !simple {
			e.skip(body, gemmaClose)
			return 0, false
		}
		return len(body) - len(gemmaClose), true
	case b == '>' && hasSuffix(body, gemmaQuote):
		if !e.scan.str {
			e.quoted = !e.quoted
		}
	case e.quoted || b == '"' && bytes.HasSuffix(body, []byte(`<|"`)):
	case !e.scan.begun && b != '{': // part of the name
	default:
		return len(body), e.scan.add(b)
	}
	return 0, false
}

// maxName bounds the length of a tool's name in bytes, where only the text after it shows its end.
const maxName = 512

// mistralEnd ends an optional name and a JSON value.
type mistralEnd struct {
	skipped
	scan jsonScan
	n    int
}

func (e *mistralEnd) add(body []byte, _ bool) (int, bool) {
	b := body[len(body)-1]
	switch {
	case e.scan.begun || b == '{' || firstByte(body) == '[' && len(body) == bytes.IndexByte(body, '[')+1:
		return len(body), e.scan.add(b)
	default:
		e.n = len(body)
	}
	return 0, false
}

func (e *mistralEnd) rejected() string {
	if e.n > maxName {
		return "no arguments"
	}
	return ""
}

// pythonEnd ends the text after the python tag: a JSON object, NAME.call(...), or Python code up to the end of the
// text.
type pythonEnd struct {
	skipped
	scan   jsonScan
	kind   byte // the first byte that is not white space
	called int  // 0: unknown; 1: NAME.call(...); 2: Python code
	paren  int
	quote  byte
	esc    bool
}

func (e *pythonEnd) add(body []byte, _ bool) (int, bool) {
	b := body[len(body)-1]
	if e.kind == 0 && !isSpace(b) {
		e.kind = b
	}
	if e.kind == '{' {
		return len(body), e.scan.add(b)
	}
	for _, t := range []string{"<|eom_id|>", "<|eot_id|>"} {
		if b == '>' && hasSuffix(body, t) {
			return len(body) - len(t), true
		}
	}
	if e.called == 0 && b == '(' {
		e.called = 2
		if name, ok := strings.CutSuffix(strings.TrimLeft(string(body), spaces), ".call("); ok && isName(name) {
			e.called = 1
		}
	}
	if e.called != 1 {
		return 0, false
	}
	switch {
	case e.esc:
		e.esc = false
	case e.quote != 0 && b == '\\':
		e.esc = true
	case e.quote == b:
		e.quote = 0
	case e.quote != 0:
	case b == '"' || b == '\'':
		e.quote = b
	case b == '(':
		e.paren++
	case b == ')':
		e.paren--
		return len(body), e.paren == 0
	}
	return 0, false
}

// isName reports whether s can be the name of a tool.
func isName(s string) bool {
	return s != "" && len(s) <= maxName && strings.IndexFunc(s, func(r rune) bool {
		return !(r == '_' || r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' ||
			r > 127)
	}) < 0
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
