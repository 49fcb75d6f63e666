package draft

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestNgrams(t *testing.T) {
	for _, test := range []struct {
		name   string
		tokens []int32
		n      int
		want   []int32
	}{
		{"no text", nil, 3, nil},
		{"one token", []int32{1}, 3, nil},
		{"nothing alike", []int32{1, 2, 3, 4, 5}, 3, nil},
		{"one token alike is too little", []int32{1, 2, 3, 4, 2}, 3, nil},
		{"two tokens alike", []int32{1, 2, 3, 4, 5, 1, 2}, 3, []int32{3, 4, 5}},
		{"at the beginning", []int32{1, 2, 1, 2}, 1, []int32{1}},
		{"no drafts wanted", []int32{1, 2, 3, 1, 2}, 0, nil},
		{"the newest of two", []int32{1, 2, 3, 1, 2, 4, 1, 2}, 1, []int32{4}},
		{"the longer of two", []int32{7, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2}, 2, []int32{3, 8}},
		{"a text that repeats itself", []int32{9, 1, 2, 3, 1, 2, 3, 1}, 7, []int32{2, 3, 1, 2, 3, 1, 2}},
		{"one token again and again", []int32{5, 5, 5}, 4, []int32{5, 5, 5, 5}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var whole, piecemeal ngrams
			if got := whole.lookup(test.tokens, test.n); !slices.Equal(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
			var got []int32
			for i := range len(test.tokens) + 1 {
				got = piecemeal.lookup(test.tokens[:i], test.n)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("token by token %v, want %v", got, test.want)
			}
		})
	}
}

// For any text, the drafts follow the longest earlier match of its last tokens, unless these occur too often to compare
// all occurrences.
func TestNgramsLongest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var g ngrams
		var tokens []int32
		for range 120 {
			for range 1 + rng.IntN(3) {
				tokens = append(tokens, rng.Int32N(6))
			}
			got := g.lookup(tokens, 3)
			if want := longest(tokens, 3); !slices.Equal(got, want) {
				t.Fatalf("%v: drafted %v, want %v", tokens, got, want)
			}
		}
	}
}

// longest is lookup by comparison with all positions.
func longest(tokens []int32, n int) []int32 {
	best, alike, tries := 0, minNgram-1, 0
	for at := len(tokens) - 1; at >= minNgram && tries < maxNgramTries && alike < maxNgram; at-- {
		k := 0
		for k < maxNgram && k < at && tokens[at-1-k] == tokens[len(tokens)-1-k] {
			k++
		}
		if k >= minNgram {
			tries++
		}
		if k > alike {
			best, alike = at, k
		}
	}
	if best == 0 {
		return nil
	}
	text := slices.Clone(tokens)
	for i := range n {
		text = append(text, text[best+i])
	}
	return text[len(tokens):]
}
