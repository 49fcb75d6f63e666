package notation

// Scan tracks strings and nesting of JSON, or of something similar, byte by byte.
type Scan struct {
	str, esc, begun bool
	depth           int
}

// InString reports whether the text is inside a string.
func (s *Scan) InString() bool { return s.str }

// Begun reports whether an object or list has begun.
func (s *Scan) Begun() bool { return s.begun }

// Add reports whether b ends an object or list.
func (s *Scan) Add(b byte) bool {
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

// Prefix tells, byte by byte, whether a text can still become objects and lists of JSON. Strings may contain
// control characters, as [Compact] accepts them; numbers and words are not checked.
type Prefix struct {
	open []byte // the brackets that are open
	want byte   // what may come next, one of the constants below
	esc  bool
}

// What may come next in a JSON text, outside of a string.
const (
	wantTop    byte = iota // an object or list, outside of all
	wantFirst              // a value or the end of the list
	wantValue              // a value
	wantKey0               // a key or the end of the object
	wantKey                // a key
	wantColon              // the colon after a key
	wantNext               // a comma or a closing bracket
	inWord                 // the rest of a number or word
	inString               // the rest of a string
	inKeyQuote             // the rest of a key
)

// Add returns false if no JSON text continues with b. The state is then undefined.
func (p *Prefix) Add(b byte) bool {
	switch p.want {
	case inString, inKeyQuote:
		switch {
		case p.esc:
			p.esc = false
		case b == '\\':
			p.esc = true
		case b == '"' && p.want == inString:
			p.want = wantNext
		case b == '"':
			p.want = wantColon
		}
		return true
	case inWord:
		if isWordByte(b) {
			return true
		}
		p.want = wantNext
	}
	if isSpace(b) {
		return true
	}
	switch p.want {
	case wantTop:
		return (b == '{' || b == '[') && p.value(b)
	case wantFirst:
		return b == ']' && p.close(b) || p.value(b)
	case wantValue:
		return p.value(b)
	case wantKey0, wantKey:
		if b == '"' {
			p.want = inKeyQuote
			return true
		}
		return p.want == wantKey0 && b == '}' && p.close(b)
	case wantColon:
		p.want = wantValue
		return b == ':'
	}
	if b != ',' {
		return p.close(b)
	}
	if p.want = wantValue; p.open[len(p.open)-1] == '{' {
		p.want = wantKey
	}
	return true
}

func (p *Prefix) value(b byte) bool {
	switch {
	case b == '{':
		p.open, p.want = append(p.open, b), wantKey0
	case b == '[':
		p.open, p.want = append(p.open, b), wantFirst
	case b == '"':
		p.want = inString
	case isWordByte(b):
		p.want = inWord
	default:
		return false
	}
	return true
}

func (p *Prefix) close(b byte) bool {
	n := len(p.open) - 1
	if n < 0 || b != p.open[n]+2 { // in ASCII, a closing bracket is two after the opening one
		return false
	}
	p.open = p.open[:n]
	if p.want = wantNext; n == 0 {
		p.want = wantTop
	}
	return true
}

// Top reports whether no value is open.
func (p *Prefix) Top() bool { return p.want == wantTop }

// InString reports whether the text is inside a string.
func (p *Prefix) InString() bool { return p.want == inString || p.want == inKeyQuote }

func isWordByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '-' || b == '+' || b == '.'
}
