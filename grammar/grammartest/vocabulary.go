// Package grammartest generates vocabularies like those of large models, for tests and benchmarks of grammars.
//
// A vocabulary is the same on every machine. It has the same mix as byte-level tokenizers trained on large corpora,
// because the mix decides how long a mask takes: words with and without a leading space, subwords, all numbers of up to
// three digits, runs of punctuation, white space, and characters of two to four bytes, whole and split.
package grammartest

import (
	"math/rand/v2"
	"strings"
)

// Tokens returns the bytes of n tokens, n >= 4096. The first 256 are the single bytes; the last is a special token
// without bytes.
func Tokens(n int) [][]byte {
	r := rand.New(rand.NewPCG(128, 256))
	seen := map[string]bool{}
	tokens := make([][]byte, 0, n)
	add := func(s string) {
		if s != "" && !seen[s] && len(tokens) < n-1 {
			seen[s] = true
			tokens = append(tokens, []byte(s))
		}
	}
	for b := range 256 {
		add(string([]byte{byte(b)}))
	}
	for i := range 1110 { // 0 to 9, 00 to 99, 000 to 999
		switch {
		case i < 10:
			add(string(rune('0' + i)))
		case i < 110:
			add(string([]byte{byte('0' + (i-10)/10), byte('0' + (i-10)%10)}))
		default:
			add(string([]byte{byte('0' + (i-110)/100), byte('0' + (i-110)/10%10), byte('0' + (i-110)%10)}))
		}
	}
	for _, c := range []string{" ", "\n", "\t", "=", "-", "*", "#", "_", "."} {
		for length := 2; length <= 96; length += 1 + length/8 {
			add(strings.Repeat(c, length))
		}
	}
	for _, s := range []string{`{"`, `":`, `": `, `": "`, `","`, `", "`, `"}`, `"]`, `"},`, `"}, {"`, `}, {"`, `],`, `]]`,
		`}}`, `[{"`, `[["`, `["`, `:[`, `:{`, `:{"`, ` {`, ` ["`, ` {"`, ` "`, `""`, `"",`,
		`\"`, `\n`, `\\`, `\u`, `\u00`, `true`, `false`, `null`, ` true`, ` false`, ` null`, `,"`, `, "`} {
		add(s)
	}
	const marks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ "
	share := n / 24
	for limit := len(tokens) + share; len(tokens) < limit; {
		length := 2 + r.IntN(3)
		var b strings.Builder
		for range length {
			b.WriteByte(marks[r.IntN(len(marks))])
		}
		add(b.String())
	}
	for limit := len(tokens) + share; len(tokens) < limit; { // a punctuation mark and the word after it, as in code
		add(string(marks[r.IntN(len(marks)-1)]) + word(r, 3))
	}
	// Characters of three bytes: single, in twos, split.
	for c, limit := rune(0x4e00), len(tokens)+2*share; len(tokens) < limit; c++ {
		add(string(c))
		switch r.IntN(8) {
		case 0:
			add(string(c) + string(rune(0x4e00+r.IntN(2000))))
		case 1:
			add(string(c)[:2])
		case 2:
			add(string(c)[1:])
		}
	}
	for limit := len(tokens) + 2*share; len(tokens) < limit; { // scripts of two bytes
		base := []rune{0x430, 0x3b1, 0x5d0, 0x627}[r.IntN(4)]
		var b strings.Builder
		if r.IntN(2) == 0 {
			b.WriteByte(' ')
		}
		for range 1 + r.IntN(5) {
			b.WriteRune(base + rune(r.IntN(24)))
		}
		add(b.String())
	}
	for limit := len(tokens) + share/16; len(tokens) < limit; { // emoji and their last three bytes
		s := string(rune(0x1f300 + r.IntN(0x300)))
		add(s[r.IntN(2):])
	}
	for len(tokens) < n-1 {
		w := word(r, 1+r.IntN(4))
		if r.IntN(5) == 0 {
			w = strings.ToUpper(w[:1]) + w[1:]
		}
		if r.IntN(5) < 3 {
			w = " " + w
		}
		add(w)
	}
	return append(tokens, nil)
}

func word(r *rand.Rand, syllables int) string {
	const (
		consonants = "bcdfghjklmnprstvwz"
		vowels     = "aeiouy"
	)
	var b strings.Builder
	for range syllables {
		b.WriteByte(consonants[r.IntN(len(consonants))])
		b.WriteByte(vowels[r.IntN(len(vowels))])
		if r.IntN(2) == 0 {
			b.WriteByte("nrstlm"[r.IntN(6)])
		}
	}
	return b.String()
}

// Longest returns an encoder that splits texts greedily into the longest tokens.
func Longest(tokens [][]byte) func(string) []int32 {
	ids := map[string]int32{}
	most := 0
	for id, b := range tokens {
		if len(b) > 0 {
			ids[string(b)] = int32(id)
			most = max(most, len(b))
		}
	}
	return func(text string) (out []int32) {
		for text != "" {
			n := min(most, len(text))
			for ; n > 1; n-- {
				if _, ok := ids[text[:n]]; ok {
					break
				}
			}
			out = append(out, ids[text[:n]])
			text = text[n:]
		}
		return out
	}
}
