package value

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsSpace is Python's str.isspace for one character, and \s in Python's regular expressions.
func IsSpace(r rune) bool {
	switch {
	case r >= '\t' && r <= '\r', r >= 0x1c && r <= 0x20, r == 0x85, r == 0xa0, r == 0x1680,
		r >= 0x2000 && r <= 0x200a, r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000:
		return true
	}
	return false
}

// IsDigit reports whether c is an ASCII digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

// IsNameStart reports whether a name can start with r.
func IsNameStart(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.Is(unicode.Nl, r) }

// IsNamePart reports whether a name can contain r.
func IsNamePart(r rune) bool {
	return IsNameStart(r) || unicode.IsDigit(r) || unicode.In(r, unicode.Mn, unicode.Mc, unicode.Pc)
}

// QuoteEscape returns Python's escape sequence of a character.
func QuoteEscape(c rune) string {
	switch {
	case c < 0x100:
		return fmt.Sprintf(`\x%02x`, c)
	case c < 0x10000:
		return fmt.Sprintf(`\u%04x`, c)
	}
	return fmt.Sprintf(`\U%08x`, c)
}

// RuneCount returns the length of s in code points.
func RuneCount(s string) int { return utf8.RuneCountInString(s) }

// IsASCII reports whether s has ASCII characters only.
func IsASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Substring returns s[from:to] in code points.
func Substring(s string, from, to int) string {
	if from >= to {
		return ""
	}
	if IsASCII(s) {
		return s[from:to]
	}
	start, i := -1, 0
	for at := range s {
		if i == from {
			start = at
		}
		if i == to {
			return s[start:at]
		}
		i++
	}
	if start < 0 {
		return ""
	}
	return s[start:]
}

// Join is strings.Join, counting memory.
func (r *Run) Join(parts []string, sep string) (string, error) {
	n := len(sep) * max(0, len(parts)-1)
	for _, p := range parts {
		n += len(p)
	}
	if err := r.Alloc(n); err != nil {
		return "", err
	}
	return strings.Join(parts, sep), nil
}
