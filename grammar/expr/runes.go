package expr

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"
)

// RuneSet is a set of characters: ranges as first and last character, sorted, without overlap.
type RuneSet []rune

var EveryRune = RuneSet{0, 0xd7ff, 0xe000, utf8.MaxRune}

// RuneSetOf makes a RuneSet of ranges in any order, and removes surrogates.
func RuneSetOf(pairs []rune) (out RuneSet) {
	type span struct{ lo, hi rune }
	var spans []span
	for i := 0; i < len(pairs); i += 2 {
		spans = append(spans, span{pairs[i], pairs[i+1]})
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	for _, s := range spans {
		if n := len(out); n > 0 && s.lo <= out[n-1]+1 {
			out[n-1] = max(out[n-1], s.hi)
		} else {
			out = append(out, s.lo, s.hi)
		}
	}
	return out.And(EveryRune)
}

func (s RuneSet) And(o RuneSet) (out RuneSet) {
	for i, k := 0, 0; i < len(s) && k < len(o); {
		if lo, hi := max(s[i], o[k]), min(s[i+1], o[k+1]); lo <= hi {
			out = append(out, lo, hi)
		}
		if s[i+1] < o[k+1] {
			i += 2
		} else {
			k += 2
		}
	}
	return out
}

// Not returns the complement of s.
func (s RuneSet) Not() (out RuneSet) {
	next := rune(0)
	for i := 0; i < len(s); i += 2 {
		if s[i] > next {
			out = append(out, next, s[i]-1)
		}
		next = s[i+1] + 1
	}
	if next <= utf8.MaxRune {
		out = append(out, next, utf8.MaxRune)
	}
	return out.And(EveryRune)
}

func (s RuneSet) Has(r rune) bool {
	for i := 0; i < len(s); i += 2 {
		if s[i] <= r && r <= s[i+1] {
			return true
		}
	}
	return false
}

// UTF8 matches one character of s in UTF-8.
func UTF8(s RuneSet) *Expr { return spansExpr(Sequences(s)) }

// Sequences returns the byte range sequences that together match the characters of s in UTF-8.
func Sequences(s RuneSet) (seqs [][]ByteSpan) {
	for i := 0; i < len(s); i += 2 {
		for _, limit := range []rune{0x7f, 0x7ff, 0xffff, utf8.MaxRune} {
			lo, hi := s[i], s[i+1]
			if first := firstOfLength[limit]; lo < first {
				lo = first
			}
			if hi = min(hi, limit); lo <= hi {
				seqs = appendUTF8(seqs, lo, hi)
			}
		}
	}
	return seqs
}

// firstOfLength maps the last character of an encoded length to the first one of that length.
var firstOfLength = map[rune]rune{0x7f: 0, 0x7ff: 0x80, 0xffff: 0x800, utf8.MaxRune: 0x10000}

// ByteSpan is a range of bytes.
type ByteSpan struct{ Lo, Hi byte }

// appendUTF8 appends byte range sequences that match the characters from lo to hi, which have the same encoded length.
func appendUTF8(seqs [][]ByteSpan, lo, hi rune) [][]ByteSpan {
	for bits := 6; bits <= 18; bits += 6 { // split where the last bytes do not cover their range
		mask := rune(1)<<bits - 1
		if lo>>bits == hi>>bits || lo <= 0x7f {
			continue
		}
		if lo&mask != 0 {
			seqs = appendUTF8(seqs, lo, lo|mask)
			return appendUTF8(seqs, lo|mask+1, hi)
		}
		if hi&mask != mask {
			seqs = appendUTF8(seqs, lo, hi&^mask-1)
			return appendUTF8(seqs, hi&^mask, hi)
		}
	}
	from, to := utf8.AppendRune(nil, lo), utf8.AppendRune(nil, hi)
	seq := make([]ByteSpan, len(from))
	for i := range from {
		seq[i] = ByteSpan{from[i], to[i]}
	}
	return append(seqs, seq)
}

// spansExpr matches any of seqs. It merges equal prefixes, so that a class of a thousand ranges has few branches.
func spansExpr(seqs [][]ByteSpan) *Expr {
	var last ByteSet
	var heads []ByteSpan
	tails := map[ByteSpan][][]ByteSpan{}
	for _, s := range seqs {
		if len(s) == 1 {
			last.addRange(s[0].Lo, s[0].Hi)
			continue
		}
		if _, ok := tails[s[0]]; !ok {
			heads = append(heads, s[0])
		}
		tails[s[0]] = append(tails[s[0]], s[1:])
	}
	parts := []*Expr{Set(last)}
	// Heads with equal tails are merged into one set.
	merged := map[string]int{}
	var sets []ByteSet
	var rests [][][]ByteSpan
	for _, h := range heads {
		key := fmt.Sprint(tails[h])
		at, ok := merged[key]
		if !ok {
			at = len(sets)
			merged[key] = at
			sets = append(sets, ByteSet{})
			rests = append(rests, tails[h])
		}
		sets[at].addRange(h.Lo, h.Hi)
	}
	for i, s := range sets {
		parts = append(parts, Seq(Set(s), spansExpr(rests[i])))
	}
	return Alt(parts...)
}
