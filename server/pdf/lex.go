package pdf

import (
	"bytes"
	"fmt"
	"math"

	"github.com/ingotml/ingot/internal/limits"
)

// Objects are nil, bool, number, text, name, word, array, dict, ref and *stream.
type (
	object = any
	number = float64
	text   string // a string of bytes
	name   string
	word   string // an operator or another keyword
	array  []object
	dict   map[name]object
	ref    struct{ num, gen int }
)

// stream is a dictionary with data, which are still encoded.
type stream struct {
	dict dict
	data []byte
	ref  ref // for decryption
}

// end is what a lexer returns at the end of its input.
const end = word("")

// lexer reads objects. The result of damaged input is unspecified, but the lexer always advances.
type lexer struct {
	b    []byte
	at   int
	w    *work
	refs bool            // objects may be references
	open func(text) text // decrypts strings; nil: they are plain

	values int // in the object that is read
}

// perObject and perList are the work that an object, and an array or a dictionary, take beside their bytes.
const (
	perObject = 4
	perList   = 64
)

func isSpace(c byte) bool {
	return c == 0 || c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == ' '
}

func isDelimiter(c byte) bool {
	switch c {
	case '(', ')', '<', '>', '[', ']', '{', '}', '/', '%':
		return true
	}
	return false
}

func isRegular(c byte) bool { return !isSpace(c) && !isDelimiter(c) }

// skip skips white space and comments.
func (l *lexer) skip() {
	for l.at < len(l.b) {
		switch c := l.b[l.at]; {
		case isSpace(c):
			l.at++
		case c == '%':
			for l.at < len(l.b) && l.b[l.at] != '\n' && l.b[l.at] != '\r' {
				l.at++
			}
		default:
			return
		}
	}
}

// object reads an object or a word.
func (l *lexer) object() object {
	l.values = 0
	return l.nested(0)
}

// deeper reports whether an array or a dictionary may begin.
func (l *lexer) deeper(depth int) bool {
	if depth > limits.PDFNesting {
		l.w.stop(fmt.Errorf("its objects are nested deeper than %d levels", limits.PDFNesting))
	}
	return l.w.err == nil
}

// another counts a value of an array or a dictionary, and reports whether there may be one more.
func (l *lexer) another() bool {
	if l.values++; l.values > limits.PDFValues {
		l.w.stop(fmt.Errorf("one of its objects has more than %d values", limits.PDFValues))
	}
	return l.w.err == nil
}

func (l *lexer) array(depth int) object {
	list := array{}
	l.w.spend(perList)
	for l.deeper(depth) && l.another() {
		at := l.at
		o := l.nested(depth)
		if w, ok := o.(word); ok {
			if w != "]" {
				l.at = at // the array is not closed
			}
			break
		}
		list = append(list, o)
	}
	return list
}

func (l *lexer) dict(depth int) object {
	d := dict{}
	l.w.spend(perList)
	for l.deeper(depth) && l.another() {
		key := l.nested(depth)
		if key == end || key == word(">>") {
			break
		}
		k, ok := key.(name)
		if !ok {
			continue // damaged: the next name may be a key
		}
		at := l.at
		v := l.nested(depth)
		if w, ok := v.(word); ok {
			if w == ">>" || w == end {
				break
			}
			if w == "endobj" || w == "stream" {
				l.at = at // the dictionary is not closed
				break
			}
			continue
		}
		d[k] = v
	}
	return d
}

func (l *lexer) nested(depth int) object {
	from := l.at
	l.skip()
	if !l.w.spend(l.at-from+perObject) || l.at >= len(l.b) {
		l.at = len(l.b)
		return end
	}
	switch c := l.b[l.at]; {
	case c == '/':
		return l.name()
	case c == '(':
		return l.decrypted(l.literal())
	case c == '<' && l.at+1 < len(l.b) && l.b[l.at+1] == '<':
		l.at += 2
		return l.dict(depth + 1)
	case c == '<':
		return l.decrypted(l.hex())
	case c == '[':
		l.at++
		return l.array(depth + 1)
	case c == '>' && l.at+1 < len(l.b) && l.b[l.at+1] == '>':
		l.at += 2
		return word(">>")
	case isDelimiter(c):
		l.at++
		return word(l.b[l.at-1 : l.at])
	case c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.':
		return l.number()
	}
	return l.word()
}

func (l *lexer) decrypted(s text) object {
	if l.open != nil {
		return l.open(s)
	}
	return s
}

func (l *lexer) word() object {
	from := l.at
	for l.at < len(l.b) && isRegular(l.b[l.at]) {
		l.at++
	}
	l.w.spend(l.at - from)
	switch s := l.b[from:l.at]; string(s) {
	case "null":
		return nil
	case "true":
		return true
	case "false":
		return false
	default:
		return word(s[:min(len(s), 32)])
	}
}

// number reads a number or, where references are allowed, one of those.
func (l *lexer) number() object {
	from := l.at
	value, fraction, digits, sign := 0.0, 0.0, 0, 1.0
	for ; l.at < len(l.b) && isRegular(l.b[l.at]); l.at++ {
		switch c := l.b[l.at]; {
		case c >= '0' && c <= '9':
			digits++
			if fraction > 0 {
				value += float64(c-'0') * fraction
				fraction /= 10
			} else {
				value = value*10 + float64(c-'0')
			}
		case c == '.' && fraction == 0:
			fraction = 0.1
		case c == '-' && digits == 0:
			sign = -1
		case c == '+' || c == '-' || c == '.':
			// damaged numbers such as 1-2 are read up to there
		default:
			if digits == 0 {
				return l.word()
			}
			l.w.spend(l.at - from)
			return sign * value // such as 0R: the rest is a word
		}
	}
	l.w.spend(l.at - from)
	if l.refs && fraction == 0 && sign > 0 && digits > 0 && value < math.MaxInt32 {
		if r, ok := l.reference(int(value)); ok {
			return r
		}
	}
	return sign * value
}

// reference reads the rest of a reference after its first number.
func (l *lexer) reference(num int) (ref, bool) {
	at := l.at
	gen, ok := l.integer()
	l.skip()
	if ok && l.at < len(l.b) && l.b[l.at] == 'R' && (l.at+1 == len(l.b) || !isRegular(l.b[l.at+1])) {
		l.at++
		return ref{num, gen}, true
	}
	l.at = at
	return ref{}, false
}

// integer reads a number of at most ten digits.
func (l *lexer) integer() (n int, ok bool) {
	l.skip()
	for from := l.at; l.at < len(l.b) && l.at < from+10 && l.b[l.at] >= '0' && l.b[l.at] <= '9'; l.at++ {
		n, ok = n*10+int(l.b[l.at]-'0'), true
	}
	return n, ok
}

func (l *lexer) name() name {
	l.at++
	from := l.at
	for l.at < len(l.b) && isRegular(l.b[l.at]) {
		l.at++
	}
	l.w.spend(l.at - from)
	s := l.b[from:l.at]
	if bytes.IndexByte(s, '#') < 0 {
		return name(s)
	}
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] == '#' && i+2 < len(s) {
			if hi, lo := hexDigit(s[i+1]), hexDigit(s[i+2]); hi >= 0 && lo >= 0 {
				out = append(out, byte(hi<<4|lo))
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return name(out)
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// literal reads a string in parentheses.
func (l *lexer) literal() text {
	from := l.at
	var out []byte
	depth := 0
	for l.at < len(l.b) {
		c := l.b[l.at]
		l.at++
		switch c {
		case '(':
			if depth++; depth == 1 {
				continue
			}
		case ')':
			if depth--; depth == 0 {
				l.w.spend(l.at - from)
				return text(out)
			}
		case '\\':
			var ok bool
			if c, ok = l.escape(); !ok {
				continue // the line continues
			}
		case '\r':
			c = '\n'
			if l.at < len(l.b) && l.b[l.at] == '\n' {
				l.at++
			}
		}
		out = append(out, c)
	}
	l.w.spend(l.at - from)
	return text(out)
}

// escape reads what follows a backslash. It returns false if that is the end of a line, which is no part of the string.
func (l *lexer) escape() (byte, bool) {
	if l.at >= len(l.b) {
		return 0, false
	}
	c := l.b[l.at]
	l.at++
	switch c {
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case '\n':
		return 0, false
	case '\r':
		if l.at < len(l.b) && l.b[l.at] == '\n' {
			l.at++
		}
		return 0, false
	}
	if c < '0' || c > '7' {
		return c, true
	}
	n := int(c - '0')
	for i := 0; i < 2 && l.at < len(l.b) && l.b[l.at] >= '0' && l.b[l.at] <= '7'; i++ {
		n = n*8 + int(l.b[l.at]-'0')
		l.at++
	}
	return byte(n), true
}

// hex reads a string of hexadecimal digits.
func (l *lexer) hex() text {
	from := l.at
	var out []byte
	high := -1
	for l.at++; l.at < len(l.b) && l.b[l.at] != '>'; l.at++ {
		d := hexDigit(l.b[l.at])
		switch {
		case d < 0:
		case high < 0:
			high = d
		default:
			out = append(out, byte(high<<4|d))
			high = -1
		}
	}
	if l.at++; high >= 0 {
		out = append(out, byte(high<<4))
	}
	l.at = min(l.at, len(l.b))
	l.w.spend(l.at - from)
	return text(out)
}
