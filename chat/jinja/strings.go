package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Case mappings are the full ones of Unicode, as in Python: sharp s becomes SS, and a final sigma has its own form.

func upper(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

func lower(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

func casefold(s string) string { return cases.Fold().String(s) }

// titleRune returns the title case of a character.
func titleRune(c rune) string {
	if c < utf8.RuneSelf {
		return string(unicode.ToUpper(c))
	}
	if u := cases.Upper(language.Und).String(string(c)); runeCount(u) > 1 {
		for i, first := range u {
			if isCased(first) {
				n := i + utf8.RuneLen(first)
				return u[:n] + cases.Lower(language.Und).String(u[n:])
			}
		}
		return u
	}
	return string(unicode.ToTitle(c))
}

func capitalize(s string) string {
	if s == "" {
		return ""
	}
	c, n := utf8.DecodeRuneInString(s)
	return titleRune(c) + lower(s[n:])
}

func isLower(c rune) bool { return unicode.IsLower(c) || unicode.Is(unicode.Other_Lowercase, c) }
func isUpper(c rune) bool { return unicode.IsUpper(c) || unicode.Is(unicode.Other_Uppercase, c) }
func isCased(c rune) bool { return isLower(c) || isUpper(c) || unicode.IsTitle(c) }

func title(s string) string {
	var b strings.Builder
	cased := false
	for _, c := range s {
		if cased {
			b.WriteString(lower(string(c)))
		} else {
			b.WriteString(titleRune(c))
		}
		cased = isCased(c)
	}
	return b.String()
}

func swapcase(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case isUpper(c):
			b.WriteString(lower(string(c)))
		case isLower(c):
			b.WriteString(upper(string(c)))
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// all reports whether s is not empty and ok holds for all its characters.
func all(s string, ok func(rune) bool) bool {
	for _, c := range s {
		if !ok(c) {
			return false
		}
	}
	return s != ""
}

// cased reports whether s has cased characters and ok holds for all of them.
func cased(s string, ok func(rune) bool) bool {
	found := false
	for _, c := range s {
		if isCased(c) {
			if !ok(c) {
				return false
			}
			found = true
		}
	}
	return found
}

func isTitle(s string) bool {
	found, previous := false, false
	for _, c := range s {
		switch {
		case isUpper(c) || unicode.IsTitle(c):
			if previous {
				return false
			}
			previous, found = true, true
		case isLower(c):
			if !previous {
				return false
			}
			found = true
		default:
			previous = false
		}
	}
	return found
}

// isDigitRune is Python's str.isdigit: decimal digits and others, such as superscripts.
func isDigitRune(c rune) bool {
	switch {
	case unicode.IsDigit(c):
		return true
	case c == 0xb2 || c == 0xb3 || c == 0xb9, c >= 0x1369 && c <= 0x1371, c == 0x19da, c == 0x2070,
		c >= 0x2074 && c <= 0x2079, c >= 0x2080 && c <= 0x2089, c >= 0x2460 && c <= 0x2468, c >= 0x2474 && c <= 0x247c,
		c >= 0x2488 && c <= 0x2490, c == 0x24ea, c >= 0x24f5 && c <= 0x24fd, c == 0x24ff, c >= 0x2776 && c <= 0x277e,
		c >= 0x2780 && c <= 0x2788, c >= 0x278a && c <= 0x2792, c >= 0x10a40 && c <= 0x10a43, c >= 0x10e60 && c <= 0x10e68,
		c >= 0x11052 && c <= 0x1105a, c >= 0x1f100 && c <= 0x1f10a:
		return true
	}
	return false
}

// numericIdeographs are common ideographs with a numeric value (Unihan's numeric fields).
const numericIdeographs = "〇一七万三九二五亖亿什仟仨伍佰億兆兩八六十千卄卅卌叁参參叄四壱壹幺廾廿弌弍弎弐拾捌柒漆玖百肆萬貮貳贰" + "陆陌陸零"

func isNumeric(c rune) bool {
	return isDigitRune(c) || unicode.IsNumber(c) || strings.ContainsRune(numericIdeographs, c)
}

func isAlnum(c rune) bool { return unicode.IsLetter(c) || isNumeric(c) }

func isIdentifier(s string) bool {
	for i, c := range s {
		if !isNameStart(c) && (i == 0 || !isNamePart(c)) {
			return false
		}
	}
	return s != ""
}

func isPrintable(s string) bool {
	for _, c := range s {
		if !unicode.IsPrint(c) {
			return false
		}
	}
	return true
}

// lineBreak returns the length of a line break at the start of s, otherwise 0.
func lineBreak(s string) int {
	c, n := utf8.DecodeRuneInString(s)
	switch {
	case strings.HasPrefix(s, "\r\n"):
		return 2
	case c >= '\n' && c <= '\r', c >= 0x1c && c <= 0x1e, c == 0x85, c == 0x2028, c == 0x2029:
		return n
	}
	return 0
}

func splitLines(s string, keep bool) []string {
	var lines []string
	start := 0
	for i := 0; i < len(s); {
		n := lineBreak(s[i:])
		if n == 0 {
			_, size := utf8.DecodeRuneInString(s[i:])
			i += size
			continue
		}
		if keep {
			lines = append(lines, s[start:i+n])
		} else {
			lines = append(lines, s[start:i])
		}
		i += n
		start = i
	}
	if start < len(s) {
		lines = append(lines, s[start:])
	}
	return lines
}

// splitSpace splits s at runs of white space, from the left and at most limit times. A negative limit means no limit.
func splitSpace(s string, limit int64) []string {
	var parts []string
	for s = strings.TrimLeftFunc(s, isSpace); s != ""; s = strings.TrimLeftFunc(s, isSpace) {
		if limit == 0 {
			return append(parts, s)
		}
		limit--
		at := strings.IndexFunc(s, isSpace)
		if at < 0 {
			return append(parts, s)
		}
		parts = append(parts, s[:at])
		s = s[at:]
	}
	return parts
}

func rsplitSpace(s string, limit int64) []string {
	var parts []string
	for s = strings.TrimRightFunc(s, isSpace); s != ""; s = strings.TrimRightFunc(s, isSpace) {
		if limit == 0 {
			parts = append(parts, s)
			break
		}
		limit--
		at := strings.LastIndexFunc(s, isSpace)
		if at < 0 {
			parts = append(parts, s)
			break
		}
		_, n := utf8.DecodeRuneInString(s[at:])
		parts = append(parts, s[at+n:])
		s = s[:at]
	}
	reverse(parts)
	return parts
}

func rsplit(s, sep string, limit int64) []string {
	var parts []string
	for {
		at := strings.LastIndex(s, sep)
		if at < 0 || limit == 0 {
			parts = append(parts, s)
			reverse(parts)
			return parts
		}
		limit--
		parts = append(parts, s[at+len(sep):])
		s = s[:at]
	}
}

func reverse[T any](s []T) {
	for i, j := 0, len(s)-1; i < j; i, j = i+1, j-1 {
		s[i], s[j] = s[j], s[i]
	}
}

func expandTabs(s string, size int64) string {
	var b strings.Builder
	col := int64(0)
	for _, c := range s {
		switch c {
		case '\t':
			if size > 0 {
				n := size - col%size
				b.WriteString(strings.Repeat(" ", int(n)))
				col += n
			}
		case '\n', '\r':
			b.WriteRune(c)
			col = 0
		default:
			b.WriteRune(c)
			col++
		}
	}
	return b.String()
}
