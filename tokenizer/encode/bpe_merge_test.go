package encode

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/work"
)

// mergeSlowly is the definition of BPE: merge the pair with the lowest rank, the leftmost of equal ones, until there is
// none.
func mergeSlowly(t *mergeTable, s []int32) []int32 {
	for {
		best, at := noRank, -1
		for i := range len(s) - 1 {
			if r, _ := t.rank(s[i], s[i+1]); r < best {
				best, at = r, i
			}
		}
		if at < 0 {
			return s
		}
		_, id := t.rank(s[at], s[at+1])
		s = slices.Replace(s, at, at+2, id)
	}
}

func TestMergesInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		// Tokens are strings, so equal concatenations are one token, as in real merges.
		ids := map[string]int32{"a": 0, "b": 1, "c": 2}
		tokens := []string{"a", "b", "c"}
		table, err := newMergeTable(nil)
		if err != nil {
			t.Fatal(err)
		}
		for rank := range uint32(1 + rng.IntN(60)) {
			a, b := tokens[rng.IntN(len(tokens))], tokens[rng.IntN(len(tokens))]
			if len(a+b) > 12 {
				continue
			}
			id, ok := ids[a+b]
			if !ok {
				id = int32(len(tokens))
				ids[a+b] = id
				tokens = append(tokens, a+b)
			}
			table.set(ids[a], ids[b], id, rank)
		}
		symbols := make([]int32, rng.IntN(3*scanLimit))
		for i := range symbols {
			symbols[i] = int32(rng.IntN(3))
		}
		want := mergeSlowly(&table, slices.Clone(symbols))
		var buffer mergeBuffer
		w := work.Start(t.Context(), work.Limits{})
		if got, err := table.applyLong(w, nil, slices.Clone(symbols), &buffer); err != nil || !slices.Equal(got, want) {
			t.Fatalf("heap: %v: got %v, want %v, %v", symbols, got, want, err)
		}
		if got := table.applyShort(slices.Clone(symbols), &buffer); !slices.Equal(got, want) {
			t.Fatalf("scan: %v: got %v, want %v", symbols, got, want)
		}
	}
}

// Many words share a cache slot. A word must never get the ids of another.
func TestWordCache(t *testing.T) {
	c := newWordCache()
	for i := range 3 * cacheSlots {
		word := strings.Repeat(string(rune('a'+i%26)), i%7+1) + string(rune(0x4e00+i%20000))
		s := c.slot(word)
		if s.key != word {
			s.set(word, []int32{int32(i)})
		}
		if s := c.slot(word); s.key != word || len(s.ids) != 1 {
			t.Fatalf("%q: %q %v", word, s.key, s.ids)
		}
	}
	if c.slot(strings.Repeat("x", cacheMaxWord+1)) != nil {
		t.Error("a long word has a slot")
	}
}
