package jsonread

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Str consumes a string and returns its bytes, which are UTF-8 and valid until the next call.
func (r *Reader) Str() ([]byte, error) {
	if r.Peek() != '"' {
		return nil, r.Unexpected(String)
	}
	start := r.Pos + 1
	i := start + plain(r.Text[start:])
	if i == len(r.Text) {
		return nil, r.Fail(Fault{Problem: Unterminated, Offset: i})
	}
	switch r.Text[i] {
	case '"':
		s := r.Text[start:i]
		if err := r.valid(s, start); err != nil {
			return nil, err
		}
		r.Pos = i + 1
		return s, nil
	case '\\':
		return r.escaped(start, i)
	}
	return nil, r.Fail(Fault{Problem: Control, Offset: i})
}

// plain returns how many bytes of s come before the first quote, backslash or control character.
func plain(s []byte) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := binary.LittleEndian.Uint64(s[i:])
		quote, backslash := w^'"'*ones, w^'\\'*ones
		// Below a high bit that is set without cause is always one that is set with cause.
		// https://graphics.stanford.edu/~seander/bithacks.html#HasLessInWord
		if m := ((w-0x20*ones)&^w | (quote-ones)&^quote | (backslash-ones)&^backslash) & high; m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c == '"' || c == '\\' || c < 0x20 {
			break
		}
	}
	return i
}

// valid checks that s, which begins at an offset of the text, is UTF-8.
func (r *Reader) valid(s []byte, offset int) error {
	if r.utf8 {
		return nil
	}
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRune(s[i:])
		if c == utf8.RuneError && n == 1 {
			return r.Fail(Fault{Problem: InvalidUTF8, Offset: offset + i})
		}
		i += n
	}
	return nil
}

// escaped reads the rest of a string from its first backslash, at i. The string begins at start.
func (r *Reader) escaped(start, i int) ([]byte, error) {
	if err := r.valid(r.Text[start:i], start); err != nil {
		return nil, err
	}
	b := append(r.buf[:0], r.Text[start:i]...)
	for i < len(r.Text) {
		c := r.Text[i]
		switch {
		case c == '"':
			r.buf = b
			r.Pos = i + 1
			return b, nil
		case c < 0x20:
			return nil, r.Fail(Fault{Problem: Control, Offset: i})
		case c == '\\':
			if i+1 == len(r.Text) {
				return nil, r.Fail(Fault{Problem: Unterminated, Offset: i})
			}
			v, n, problem := r.escape(r.Text[i:])
			if n == 0 {
				return nil, r.Fail(Fault{Problem: problem, Offset: i})
			}
			b = utf8.AppendRune(b, v)
			i += n
		case c < utf8.RuneSelf || r.utf8:
			b = append(b, c)
			i++
		default:
			v, n := utf8.DecodeRune(r.Text[i:])
			if v == utf8.RuneError && n == 1 {
				return nil, r.Fail(Fault{Problem: InvalidUTF8, Offset: i})
			}
			b = append(b, r.Text[i:i+n]...)
			i += n
		}
	}
	return nil, r.Fail(Fault{Problem: Unterminated, Offset: len(r.Text)})
}

// escape decodes the escape at the start of s, a backslash and at least one byte. A pair of surrogates is one escape.
// n is its length, 0 if it is invalid.
func (r *Reader) escape(s []byte) (v rune, n int, problem Problem) {
	if at := strings.IndexByte(`"\/bfnrt`, s[1]); at >= 0 {
		return rune("\"\\/\b\f\n\r\t"[at]), 2, 0
	}
	v = unit(s)
	if v < 0 {
		return 0, 0, InvalidEscape
	}
	if !utf16.IsSurrogate(v) {
		return v, 6, 0
	}
	if pair := utf16.DecodeRune(v, unit(s[6:])); pair != utf8.RuneError {
		return pair, 12, 0
	}
	if r.options.ReplaceSurrogates {
		return utf8.RuneError, 6, 0
	}
	return 0, 0, LoneSurrogate
}

// unit decodes \uXXXX at the start of s; -1 if it is something else.
func unit(s []byte) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	var v rune
	for _, c := range s[2:6] {
		switch {
		case '0' <= c && c <= '9':
			v = v<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			v = v<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			v = v<<4 | rune(c-'A'+10)
		default:
			return -1
		}
	}
	return v
}
