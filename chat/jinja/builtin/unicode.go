package builtin

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ingotml/ingot/chat/jinja/value"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Case mappings are the full ones of Unicode, as in Python: sharp s becomes SS, and a final sigma has its own form.

func upper(s string) string {
	if value.IsASCII(s) {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

func lower(s string) string {
	if value.IsASCII(s) {
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
	if u := cases.Upper(language.Und).String(string(c)); value.RuneCount(u) > 1 {
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
