package ast

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/runenames"
)

// unescape decodes the escape sequences of a string literal like Python's unicode-escape codec.
func unescape(s string) (string, error) {
	if !strings.ContainsRune(s, '\\') {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			i++
			continue
		}
		i++
		if i == len(s) {
			return "", errors.New("\\ at end of string")
		}
		c := s[i]
		i++
		switch c {
		case '\n':
		case '\\', '\'', '"':
			b.WriteByte(c)
		case 'a':
			b.WriteByte('\a')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'v':
			b.WriteByte('\v')
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n := int(c - '0')
			for j := 0; j < 2 && i < len(s) && s[i] >= '0' && s[i] <= '7'; j++ {
				n = n*8 + int(s[i]-'0')
				i++
			}
			b.WriteRune(rune(n))
		case 'x', 'u', 'U':
			n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			if i+n > len(s) {
				return "", fmt.Errorf("truncated \\%c escape", c)
			}
			v, err := strconv.ParseUint(s[i:i+n], 16, 32)
			if err != nil {
				return "", fmt.Errorf("truncated \\%c escape", c)
			}
			if v > utf8.MaxRune {
				return "", errors.New("illegal Unicode character")
			}
			b.WriteRune(rune(v)) // a surrogate becomes U+FFFD
			i += n
		case 'N':
			end := strings.IndexByte(s[i:], '}')
			if end < 0 || s[i] != '{' {
				return "", errors.New("malformed \\N character escape")
			}
			r, ok := runeNamed(s[i+1 : i+end])
			if !ok {
				return "", errors.New("unknown Unicode character name")
			}
			b.WriteRune(r)
			i += end + 1
		default:
			b.WriteByte('\\')
			if c < utf8.RuneSelf {
				b.WriteByte(c)
				break
			}
			// The reference first replaces a non-ASCII character by an escape sequence, and the preceding backslash then escapes
			// that sequence's backslash.
			r, size := utf8.DecodeRuneInString(s[i-1:])
			i += size - 1
			switch {
			case r < 0x100:
				fmt.Fprintf(&b, "x%02x", r)
			case r < 0x10000:
				fmt.Fprintf(&b, "u%04x", r)
			default:
				fmt.Fprintf(&b, "U%08x", r)
			}
		}
	}
	return b.String(), nil
}

var runeNames = sync.OnceValue(func() map[string]rune {
	m := make(map[string]rune, 40000)
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if n := runenames.Name(r); n != "" && n[0] != '<' {
			m[n] = r
		}
	}
	return m
})

// runeNamed returns the character with a Unicode name.
func runeNamed(name string) (rune, bool) {
	r, ok := runeNames()[strings.ToUpper(name)]
	return r, ok
}
