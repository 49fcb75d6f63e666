// Package clip shortens text from outside before a message quotes it.
//
// Contract:
//   - A text that is cut ends with "..."; a text within its bound is not changed.
//   - How much a room quotes is the room's decision. Escaping for a terminal is cmd/terminal's, redaction
//     registry/redact's.
//   - The package imports nothing of the project.
package clip

import (
	"strings"
	"unicode"
)

const cut = "..."

// Text keeps at most that many characters. In a text that is cut, each byte that is not UTF-8 becomes U+FFFD.
func Text(s string, most int) string {
	n := 0
	for i := range s {
		if n == most {
			return string([]rune(s[:i])) + cut
		}
		n++
	}
	return s
}

// Line is Text of a single line: each run of white space becomes a space, and none is left at the ends.
func Line(s string, most int) string {
	return Text(strings.Join(strings.Fields(s), " "), most)
}

// Bytes keeps at most that many bytes. In a text that is cut, bytes that are not UTF-8 are removed.
func Bytes(s string, most int) string {
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + cut
	}
	return s
}

// Middle keeps at most that many bytes of a message: its beginning, which says what failed, and its end, which says
// what to do. In a text that is cut, bytes that are not UTF-8 are removed.
func Middle(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const gap = " " + cut + " "
	end := (most - len(gap)) / 4
	return strings.ToValidUTF8(s[:most-len(gap)-end], "") + gap + strings.ToValidUTF8(s[len(s)-end:], "")
}

// Controls replaces control characters, such as line breaks, by spaces.
func Controls(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
