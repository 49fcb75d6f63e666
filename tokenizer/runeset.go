package tokenizer

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// runeSet is a set of code points as sorted, non-adjacent ranges, without surrogates.
type runeSet []runeRange

type runeRange struct{ lo, hi rune }

// newRuneSet returns the union of ranges in any order.
func newRuneSet(ranges ...runeRange) runeSet {
	slices.SortFunc(ranges, func(a, b runeRange) int { return int(a.lo - b.lo) })
	var out runeSet
	add := func(r runeRange) {
		if n := len(out); n > 0 && r.lo <= out[n-1].hi+1 {
			out[n-1].hi = max(out[n-1].hi, r.hi)
		} else if r.lo <= r.hi {
			out = append(out, r)
		}
	}
	for _, r := range ranges {
		if r.lo < 0xd800 && r.hi >= 0xd800 {
			add(runeRange{r.lo, 0xd7ff})
			r.lo = 0xd800
		}
		if r.lo >= 0xd800 && r.lo <= 0xdfff {
			r.lo = 0xe000
		}
		add(r)
	}
	return out
}

func (s runeSet) union(t runeSet) runeSet {
	return newRuneSet(append(slices.Clone(s), t...)...)
}

func (s runeSet) complement() runeSet {
	var out []runeRange
	next := rune(0)
	for _, r := range s {
		out = append(out, runeRange{next, r.lo - 1})
		next = r.hi + 1
	}
	return newRuneSet(append(out, runeRange{next, utf8.MaxRune})...)
}

func (s runeSet) intersect(t runeSet) runeSet {
	return s.complement().union(t.complement()).complement()
}

func (s runeSet) contains(c rune) bool {
	_, found := slices.BinarySearchFunc(s, c, func(r runeRange, c rune) int {
		if c < r.lo {
			return 1
		}
		if c > r.hi {
			return -1
		}
		return 0
	})
	return found
}

// foldASCII adds what (?i) adds to the ASCII letters of s: the other case, the long s and the Kelvin sign.
func (s runeSet) foldASCII() runeSet {
	var more []runeRange
	for c := 'A'; c <= 'z'; c++ {
		if !asciiLetter(byte(c)) || !s.contains(c) {
			continue
		}
		for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
			more = append(more, runeRange{f, f})
		}
	}
	return s.union(newRuneSet(more...))
}

// runesOf returns the members of a class.
func runesOf(set class) runeSet {
	t := characters()
	var out []runeRange
	for page, at := range t.index {
		p := &t.pages[at]
		for i := 0; i < len(p); {
			start := i
			in := set>>(p[i]&0x1f)&1 != 0
			for i < len(p) && (set>>(p[i]&0x1f)&1 != 0) == in {
				i++
			}
			if in {
				out = append(out, runeRange{rune(page<<8 + start), rune(page<<8 + i - 1)})
			}
		}
	}
	return newRuneSet(out...)
}

// appendClass appends the set as a character class in the general engine's syntax.
func (s runeSet) appendClass(b []byte) []byte {
	if len(s) == 0 {
		return append(b, `(?!)`...)
	}
	b = append(b, '[')
	for _, r := range s {
		b = appendRune(b, r.lo)
		if r.hi > r.lo {
			b = append(b, '-')
			b = appendRune(b, r.hi)
		}
	}
	return append(b, ']')
}

const hexDigits = "0123456789abcdef"

// appendRune appends a character such that it has no special meaning inside or outside of a class.
func appendRune(b []byte, c rune) []byte {
	if c < utf8.RuneSelf && !asciiLetter(byte(c)) && (c < '0' || c > '9') {
		return append(b, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
	}
	return utf8.AppendRune(b, c)
}
