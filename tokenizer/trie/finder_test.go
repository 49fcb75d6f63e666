package trie

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/work"
)

// findSlowly is what a Finder finds, by definition.
func findSlowly(entries []Entry, s string, at int) (from, to int, id int32) {
	for ; at < len(s); at++ {
		to = -1
		for _, e := range entries {
			if e.Text != "" && strings.HasPrefix(s[at:], e.Text) && at+len(e.Text) >= to {
				to, id = at+len(e.Text), e.ID
			}
		}
		if to >= 0 {
			return at, to, id
		}
	}
	return -1, 0, 0
}

func TestFinder(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	word := func(most int) string {
		b := make([]byte, rng.IntN(most+1))
		for i := range b {
			b[i] = "ab\xff"[rng.IntN(3)]
		}
		return string(b)
	}
	for range 2000 {
		var entries []Entry
		for id := range int32(rng.IntN(6)) {
			entries = append(entries, Entry{word(6), id})
		}
		s := word(40)
		if rng.IntN(50) == 0 { // of several blocks
			s = strings.Repeat(s, 2*block/(len(s)+1)+1)
		}
		m := work.Start(t.Context(), work.Limits{})
		search := NewFinder(append([]Entry(nil), entries...)).Search(s)
		for at := 0; at <= len(s); {
			from, to, id, err := search.Next(m, at)
			wantFrom, wantTo, wantID := findSlowly(entries, s, at)
			if err != nil || from != wantFrom || to != wantTo || id != wantID {
				t.Fatalf("%q in %.80q from %d: %d to %d, id %d, %v; want %d to %d, id %d", entries, s, at, from, to, id, err,
					wantFrom, wantTo, wantID)
			}
			if from < 0 {
				break
			}
			at = to + rng.IntN(2)*rng.IntN(5)
		}
	}
}
