package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ingotml/ingot/tokenizer/tokenizertest"
)

// A long text that is one word: quadratic merging or scanning would take minutes.
func TestLongWord(t *testing.T) {
	for _, name := range []string{"gpt2", "starcoder", "llama3", "o200k"} {
		tok := loadFixture(t, name)
		for _, unit := range []string{"a", "theandof", " ", "\n", "!", "1", "日", "A日", "'s", "\u0301"} {
			text := strings.Repeat(unit, 1<<16/len(unit))
			ids, err := tok.Encode(t.Context(), text, false)
			if err != nil {
				t.Errorf("%s, %q: %v", name, unit, err)
				continue
			}
			back, err := tok.Decode(ids, false)
			if name == "starcoder" { // it puts a space before each digit
				back, text = strings.ReplaceAll(back, " ", ""), strings.ReplaceAll(text, " ", "")
			}
			if err != nil || back != text {
				t.Errorf("%s, %q: decodes to %d bytes, want %d, %v", name, unit, len(back), len(text), err)
			}
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	tok := loadFixture(t, "llama3")
	texts := make([]string, 50)
	want := make([][]int32, len(texts))
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range texts {
		texts[i] = tokenizertest.ScanText(rng, 200)
		ids, err := tok.Encode(t.Context(), texts[i], true)
		if err != nil {
			t.Fatal(err)
		}
		want[i] = ids
	}
	fresh := loadFixture(t, "llama3")
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range texts {
				i := (i*7 + worker) % len(texts)
				got, err := fresh.Encode(t.Context(), texts[i], true)
				if err != nil || !slices.Equal(got, want[i]) {
					t.Errorf("%q: got %v, want %v, %v", texts[i], got, want[i], err)
				}
				if _, err := fresh.Decode(got, true); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
