package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/clip"
)

// Plain reports whether a terminal only displays a character, without interpreting it or rearranging the text around
// it. Control characters are not plain, except line feed and tab. Neither are line separators, characters that override
// the direction of text, and tags, which carry hidden text. Right-to-left scripts and emoji sequences need none of
// these.
func Plain(r rune) bool {
	switch {
	case r < ' ':
		return r == '\n' || r == '\t'
	case r < 0x7f:
		return true
	case r < 0xa0:
		return false
	case r < 0x600: // Latin, Greek, Cyrillic, Hebrew: skip the table lookup
		return true
	}
	return !unicode.Is(notPlain, r)
}

// notPlain lists the characters from U+0600 on that are not plain.
var notPlain = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x061c, Hi: 0x061c, Stride: 1}, // Arabic letter mark
		{Lo: 0x200e, Hi: 0x200f, Stride: 1}, // left-to-right and right-to-left mark
		{Lo: 0x2028, Hi: 0x202e, Stride: 1}, // line and paragraph separator, embeddings and overrides of direction
		{Lo: 0x2066, Hi: 0x206f, Stride: 1}, // isolates, deprecated format characters
		{Lo: 0xfff9, Hi: 0xfffb, Stride: 1}, // interlinear annotations
	},
	R32: []unicode.Range32{
		{Lo: 0xe0000, Hi: 0xe00ff, Stride: 1}, // tags
		{Lo: 0xe01f0, Hi: 0xe0fff, Stride: 1}, // reserved for tags; the variation selectors in between are plain
	},
}

// Clean returns text with every character that is not plain replaced by an escape such as \u001b, and each byte that is
// not UTF-8 by U+FFFD. A carriage return before a line feed is dropped. The escapes are JSON's, so cleaned JSON keeps
// its value. Clean is idempotent.
func Clean(s string) string {
	if plainPrefix(s) == len(s) {
		return s
	}
	var c cleaner
	out := c.clean([]byte(s))
	return string(append(out[:len(out):len(out)], c.rest()...))
}

// Line is [Clean] for a text that must stay on one line, such as an error or a table cell: line breaks and tabs become
// spaces, and of a text of more than [limits.Message] bytes the middle is left out.
func Line(s string) string {
	s = clip.Middle(s, limits.Message)
	if plainPrefix(s) < len(s) || strings.ContainsAny(s, "\n\t") {
		s = breaks.Replace(s)
	}
	return Clean(strings.TrimRight(s, " "))
}

// breaks replaces line breaks and tabs by spaces.
var breaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ", "\v", " ", "\f", " ",
	"\u0085", " ", "\u2028", " ", "\u2029", " ")

// plainPrefix returns the length of the longest prefix that Clean leaves unchanged.
func plainPrefix[T string | []byte](s T) int {
	for i := 0; i < len(s); {
		b := s[i]
		switch {
		case b >= ' ' && b < 0x7f || b == '\n' || b == '\t':
			i++
			continue
		case b < utf8.RuneSelf:
			return i
		}
		r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		if n == 1 || !Plain(r) {
			return i
		}
		i += n
	}
	return len(s)
}

// cleaner is the state of Clean over a stream.
type cleaner struct {
	held []byte // an incomplete character or a carriage return at the end of the last write
}

// clean returns the clean form of the next bytes of the stream. It returns p itself if p is clean.
func (c *cleaner) clean(p []byte) []byte {
	if len(c.held) == 0 && plainPrefix(p) == len(p) {
		return p
	}
	in := append(c.held, p...)
	c.held = nil
	out := make([]byte, 0, len(in)+32)
	for len(in) > 0 {
		n := plainPrefix(in)
		out = append(out, in[:n]...)
		in = in[n:]
		switch {
		case len(in) == 0:
		case !utf8.FullRune(in) || len(in) == 1 && in[0] == '\r':
			c.held, in = in, nil
		case in[0] == '\r' && in[1] == '\n':
			in = in[1:]
		default:
			r, n := utf8.DecodeRune(in)
			if n == 1 && r == utf8.RuneError {
				out = utf8.AppendRune(out, r)
			} else {
				out = append(out, escape(r)...)
			}
			in = in[n:]
		}
	}
	return out
}

// rest returns the clean form of the bytes held at the end of the stream.
func (c *cleaner) rest() []byte {
	var out []byte
	for _, b := range c.held {
		if b == '\r' {
			out = append(out, escape('\r')...)
		} else {
			out = utf8.AppendRune(out, utf8.RuneError)
		}
	}
	c.held = nil
	return out
}

// escape returns a character as a JSON escape.
func escape(r rune) string {
	if high, low := utf16.EncodeRune(r); r > 0xffff {
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
