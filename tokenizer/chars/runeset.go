package chars

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// RuneSet is a set of code points as sorted, non-adjacent ranges, without surrogates.
type RuneSet []RuneRange

type RuneRange struct{ Lo, Hi rune }

// NewRuneSet returns the union of ranges in any order.
func NewRuneSet(ranges ...RuneRange) RuneSet {
	slices.SortFunc(ranges, func(a, b RuneRange) int { return int(a.Lo - b.Lo) })
	var out RuneSet
	add := func(r RuneRange) {
		if n := len(out); n > 0 && r.Lo <= out[n-1].Hi+1 {
			out[n-1].Hi = max(out[n-1].Hi, r.Hi)
		} else if r.Lo <= r.Hi {
			out = append(out, r)
		}
	}
	for _, r := range ranges {
		if r.Lo < 0xd800 && r.Hi >= 0xd800 {
			add(RuneRange{r.Lo, 0xd7ff})
			r.Lo = 0xd800
		}
		if r.Lo >= 0xd800 && r.Lo <= 0xdfff {
			r.Lo = 0xe000
		}
		add(r)
	}
	return out
}

func (s RuneSet) union(t RuneSet) RuneSet {
	return NewRuneSet(append(slices.Clone(s), t...)...)
}

func (s RuneSet) Complement() RuneSet {
	var out []RuneRange
	next := rune(0)
	for _, r := range s {
		out = append(out, RuneRange{next, r.Lo - 1})
		next = r.Hi + 1
	}
	return NewRuneSet(append(out, RuneRange{next, utf8.MaxRune})...)
}

func (s RuneSet) Intersect(t RuneSet) RuneSet {
	return s.Complement().union(t.Complement()).Complement()
}

func (s RuneSet) contains(c rune) bool {
	_, found := slices.BinarySearchFunc(s, c, func(r RuneRange, c rune) int {
		if c < r.Lo {
			return 1
		}
		if c > r.Hi {
			return -1
		}
		return 0
	})
	return found
}

// FoldASCII adds what (?i) adds to the ASCII letters of s: the other case, the long s and the Kelvin sign.
func (s RuneSet) FoldASCII() RuneSet {
	var more []RuneRange
	for c := 'A'; c <= 'z'; c++ {
		if !AsciiLetter(byte(c)) || !s.contains(c) {
			continue
		}
		for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
			more = append(more, RuneRange{f, f})
		}
	}
	return s.union(NewRuneSet(more...))
}

// RuneSetOf returns the members of a class.
func RuneSetOf(set Class) RuneSet {
	t := Characters()
	var out []RuneRange
	for page, at := range t.index {
		p := &t.list[at]
		for i := 0; i < len(p); {
			start := i
			in := set>>(p[i]&0x1f)&1 != 0
			for i < len(p) && (set>>(p[i]&0x1f)&1 != 0) == in {
				i++
			}
			if in {
				out = append(out, RuneRange{rune(page<<8 + start), rune(page<<8 + i - 1)})
			}
		}
	}
	return NewRuneSet(out...)
}

// AppendClass appends the set as a character class in the general engine's syntax.
func (s RuneSet) AppendClass(b []byte) []byte {
	if len(s) == 0 {
		return append(b, `(?!)`...)
	}
	b = append(b, '[')
	for _, r := range s {
		b = AppendRune(b, r.Lo)
		if r.Hi > r.Lo {
			b = append(b, '-')
			b = AppendRune(b, r.Hi)
		}
	}
	return append(b, ']')
}

const hexDigits = "0123456789abcdef"

// AppendRune appends a character such that it has no special meaning inside or outside of a class.
func AppendRune(b []byte, c rune) []byte {
	if c < utf8.RuneSelf && !AsciiLetter(byte(c)) && (c < '0' || c > '9') {
		return append(b, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
	}
	return utf8.AppendRune(b, c)
}

func AsciiLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
