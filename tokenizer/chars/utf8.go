// Package chars knows characters as the reference does: classes, properties, scripts, grapheme clusters, sets of
// characters, ill-formed UTF-8 and the byte-level alphabet.
//
// Contract: the tables are those of the reference's Unicode versions, made by scripts in testdata/gen, and not those of
// Go. They are read on first use, are immutable and safe for concurrent use.
package chars

import (
	"strings"
	"unicode/utf8"
)

const Replacement = "\ufffd"

const SpaceMark = "\u2581" // SentencePiece's replacement for a space

// ValidText returns s with each maximal subpart of an ill-formed sequence replaced by U+FFFD (Unicode 16, section 3.9,
// "U+FFFD Substitution of Maximal Subparts"), like Python's decode("utf-8", "replace") and Rust's from_utf8_lossy.
func ValidText(s string) string {
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
		n, state := Sequence(s[i:])
		if state == WellFormed {
			b.WriteString(s[i : i+n])
		} else {
			b.WriteString(Replacement)
		}
		i += n
	}
	return b.String()
}

type sequenceState int

const (
	WellFormed sequenceState = iota // a character
	illFormed                       // can never become a character
	Incomplete                      // ends where a continuation byte could still follow
)

// Sequence returns the length of the character, or of the maximal subpart of an ill-formed one, at the start of s.
func Sequence[T string | []byte](s T) (int, sequenceState) {
	c := s[0]
	need, lo, hi := 0, byte(0x80), byte(0xbf) // continuation bytes, and the range of the first of them
	switch {
	case c < 0x80:
		return 1, WellFormed
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
			return n, Incomplete
		}
		if s[n] < lo || s[n] > hi {
			return n, illFormed
		}
		lo, hi = 0x80, 0xbf
	}
	return need + 1, WellFormed
}
