package pattern

import (
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/tokenizer/chars"
)

// These functions are named after what they match. scanParts has their patterns.

// letterCase is how a contraction compares letters.
type letterCase int

const (
	sameCase  letterCase = iota
	asciiCase            // ignores the case of ASCII letters
	anyCase              // the engine's (?i), which includes the long s
)

// contraction matches 's, 't, 're, 've, 'm, 'll, 'd.
func contraction(fold letterCase) scanPart {
	return func(x *search, i int) int { return contractionAt(x.s, i, fold) }
}

func contractionAt(s string, i int, fold letterCase) int {
	if s[i] != '\'' || i+1 == len(s) {
		return -1
	}
	lower := func(i int) byte {
		c := s[i]
		if fold != sameCase && c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		return c
	}
	switch c := lower(i + 1); c {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v', 'l':
		second := byte('e')
		if c == 'l' {
			second = 'l'
		}
		if i+2 < len(s) && lower(i+2) == second {
			return i + 3
		}
	}
	if fold == anyCase && strings.HasPrefix(s[i+1:], "\u017f") {
		return i + 1 + len("\u017f")
	}
	return -1
}

// spaced matches an optional space, a run of the class, and a run of the given ASCII characters.
func spaced(set chars.Class, tail string) scanPart {
	return func(x *search, i int) int {
		s, start := x.s, i
		if s[i] == ' ' {
			start++
		}
		end := x.t.Skip(s, start, set)
		if end == start {
			return -1 // no class contains the space, so it cannot match without it either
		}
		for tail != "" && end < len(s) && strings.IndexByte(tail, s[end]) >= 0 {
			end++
		}
		return end
	}
}

// spacedBefore matches as spaced does, with at most one of the ASCII characters.
func spacedBefore(set chars.Class, tail string) scanPart {
	p := spaced(set, "")
	return func(x *search, i int) int {
		end := p(x, i)
		if end >= 0 && end < len(x.s) && strings.IndexByte(tail, x.s[end]) >= 0 {
			end++
		}
		return end
	}
}

// phrase matches words with one space between them, after an optional character that is neither a letter nor a number
// nor a line break. A word is letters with marks.
func phrase(x *search, i int) int {
	t, s := x.t, x.s
	isLetter, n := t.At(s, i, letter)
	if !isLetter {
		if bad, _ := t.At(s, i, number); bad || s[i] == '\r' || s[i] == '\n' || i+n == len(s) {
			return -1
		}
		if i += n; !t.In(runeAt(s, i), letter) {
			return -1
		}
	}
	for {
		i = t.Skip(s, i, letter|mark)
		if i+1 >= len(s) || s[i] != ' ' || !t.In(runeAt(s, i+1), letter) {
			return i
		}
		i++
	}
}

func runeAt(s string, i int) rune {
	c, _ := utf8.DecodeRuneInString(s[i:])
	return c
}

// prefixed matches an optional character that is neither a line break nor in not, and a run of the class.
func prefixed(not, set chars.Class) scanPart {
	return func(x *search, i int) int {
		t, s := x.t, x.s
		end := t.Skip(s, i, set)
		if end > i {
			return end // a prefix from the class itself makes no difference
		}
		if s[i] == '\r' || s[i] == '\n' {
			return -1
		}
		bad, n := t.At(s, i, not)
		if bad {
			return -1
		}
		if end = t.Skip(s, i+n, set); end > i+n {
			return end
		}
		return -1
	}
}

// upTo matches one to limit characters of the class; limit 0: unlimited.
func upTo(limit int, set chars.Class) scanPart {
	return func(x *search, i int) int {
		t, s, end := x.t, x.s, i
		if limit == 0 {
			end = t.Skip(s, i, set)
		}
		for n := 0; n < limit && end < len(s); n++ {
			ok, width := t.At(s, end, set)
			if !ok {
				break
			}
			end += width
		}
		if end == i {
			return -1
		}
		return end
	}
}

// punctuatedASCII matches one ASCII punctuation character and ASCII letters.
func punctuatedASCII(x *search, i int) int {
	s := x.s
	if c := s[i]; c <= ' ' || c >= 0x7f || chars.AsciiLetter(c) || c >= '0' && c <= '9' {
		return -1
	}
	end := i + 1
	for end < len(s) && chars.AsciiLetter(s[end]) {
		end++
	}
	if end == i+1 {
		return -1
	}
	return end
}

// kana matches a run of U+4E00 to U+9FA5 and U+3040 to U+30FF.
func kana(x *search, i int) int {
	for at, c := range x.s[i:] {
		if !(c >= 0x4e00 && c <= 0x9fa5 || c >= 0x3040 && c <= 0x30ff) {
			if at == 0 {
				return -1
			}
			return i + at
		}
	}
	return len(x.s)
}

const (
	classUpper chars.Class = 1<<chars.CatLu | 1<<chars.CatLt | 1<<chars.CatLm | 1<<chars.CatLo | chars.ClassMark
	classLower chars.Class = 1<<chars.CatLl | 1<<chars.CatLm | 1<<chars.CatLo | chars.ClassMark
)

// camel matches capitals followed by small letters, after an optional prefix. lower requires at least one small letter,
// otherwise at least one capital is required. Caseless characters belong to both classes, so with lower the match may
// end within the first run.
func camel(lower bool) scanPart {
	word := func(t *chars.Table, s string, i int) int {
		upper := i // end of the capitals
		both := -1 // end of the last of them that could also be a small letter
		for upper < len(s) {
			ok, n := t.At(s, upper, classUpper)
			if !ok {
				break
			}
			if small, _ := t.At(s, upper, classLower); small {
				both = upper + n
			}
			upper += n
		}
		end := t.Skip(s, upper, classLower)
		switch {
		case lower && end == upper:
			return both
		case !lower && upper == i:
			return -1
		}
		return end
	}
	return func(x *search, i int) int {
		if x.s[i] != '\r' && x.s[i] != '\n' {
			if bad, n := x.t.At(x.s, i, chars.ClassLetter|chars.ClassNumber); !bad && i+n < len(x.s) {
				if end := word(x.t, x.s, i+n); end >= 0 {
					return end
				}
			}
		}
		return word(x.t, x.s, i)
	}
}

// withContraction allows a contraction after p.
func withContraction(p scanPart) scanPart {
	return func(x *search, i int) int {
		end := p(x, i)
		if end < 0 || end == len(x.s) {
			return end
		}
		return max(end, contractionAt(x.s, end, anyCase))
	}
}
