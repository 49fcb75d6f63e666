package pattern

import (
	"strings"

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
	return func(_ *chars.Table, s string, i int) int { return contractionAt(s, i, fold) }
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
	return func(t *chars.Table, s string, i int) int {
		start := i
		if s[i] == ' ' {
			start++
		}
		end := t.Skip(s, start, set)
		if end == start {
			return -1 // no class contains the space, so it cannot match without it either
		}
		for tail != "" && end < len(s) && strings.IndexByte(tail, s[end]) >= 0 {
			end++
		}
		return end
	}
}

// prefixed matches an optional character that is neither a line break nor in not, and a run of the class.
func prefixed(not, set chars.Class) scanPart {
	return func(t *chars.Table, s string, i int) int {
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
	return func(t *chars.Table, s string, i int) int {
		if limit == 0 {
			if end := t.Skip(s, i, set); end > i {
				return end
			}
			return -1
		}
		end := i
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

// spaceToLineBreak matches white space up to and including its last line break.
func spaceToLineBreak(t *chars.Table, s string, i int) int {
	end := t.Skip(s, i, chars.ClassSpace)
	if at := strings.LastIndexAny(s[i:end], "\r\n"); at >= 0 {
		return i + at + 1
	}
	return -1
}

// spaceBeforeSpace matches white space, without its last character if other text follows.
func spaceBeforeSpace(t *chars.Table, s string, i int) int {
	last, end := i, i // last: start of the last white space character
	for end < len(s) {
		ok, n := t.At(s, end, chars.ClassSpace)
		if !ok {
			break
		}
		last, end = end, end+n
	}
	if end < len(s) {
		end = last
	}
	if end == i {
		return -1
	}
	return end
}

// punctuatedASCII matches one ASCII punctuation character and ASCII letters.
func punctuatedASCII(_ *chars.Table, s string, i int) int {
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
func kana(_ *chars.Table, s string, i int) int {
	for at, c := range s[i:] {
		if !(c >= 0x4e00 && c <= 0x9fa5 || c >= 0x3040 && c <= 0x30ff) {
			if at == 0 {
				return -1
			}
			return i + at
		}
	}
	return len(s)
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
	return func(t *chars.Table, s string, i int) int {
		if s[i] != '\r' && s[i] != '\n' {
			if bad, n := t.At(s, i, chars.ClassLetter|chars.ClassNumber); !bad && i+n < len(s) {
				if end := word(t, s, i+n); end >= 0 {
					return end
				}
			}
		}
		return word(t, s, i)
	}
}

// withContraction allows a contraction after p.
func withContraction(p scanPart) scanPart {
	return func(t *chars.Table, s string, i int) int {
		end := p(t, s, i)
		if end < 0 || end == len(s) {
			return end
		}
		return max(end, contractionAt(s, end, anyCase))
	}
}
