package tokenizer

import (
	"strings"
	"unicode/utf8"
)

const replacement = "\ufffd"

// validText returns s with each maximal subpart of an ill-formed sequence replaced by U+FFFD (Unicode 16, section 3.9,
// "U+FFFD Substitution of Maximal Subparts"), like Python's decode("utf-8", "replace") and Rust's from_utf8_lossy.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			b.WriteByte(s[i])
			i++
			continue
		}
		n, state := sequence(s[i:])
		if state == wellFormed {
			b.WriteString(s[i : i+n])
		} else {
			b.WriteString(replacement)
		}
		i += n
	}
	return b.String()
}

type sequenceState int

const (
	wellFormed sequenceState = iota // a character
	illFormed                       // can never become a character
	incomplete                      // ends where a continuation byte could still follow
)

// sequence returns the length of the character, or of the maximal subpart of an ill-formed one, at the start of s.
func sequence[T string | []byte](s T) (int, sequenceState) {
	c := s[0]
	need, lo, hi := 0, byte(0x80), byte(0xbf) // continuation bytes, and the range of the first of them
	switch {
	case c < 0x80:
		return 1, wellFormed
	case c >= 0xc2 && c <= 0xdf:
		need = 1
	case c >= 0xe0 && c <= 0xef:
		need = 2
		if c == 0xe0 {
			lo = 0xa0
		} else if c == 0xed {
			hi = 0x9f
		}
	case c >= 0xf0 && c <= 0xf4:
		need = 3
		if c == 0xf0 {
			lo = 0x90
		} else if c == 0xf4 {
			hi = 0x8f
		}
	default:
		return 1, illFormed
	}
	for n := 1; n <= need; n++ {
		if n == len(s) {
			return n, incomplete
		}
		if s[n] < lo || s[n] > hi {
			return n, illFormed
		}
		lo, hi = 0x80, 0xbf
	}
	return need + 1, wellFormed
}
