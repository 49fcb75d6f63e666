package batch

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// The next turn of a conversation continues the state of the last one. Any other request makes that state go to the
// prefix cache, from which a later turn restores it.
func TestParked(t *testing.T) {
	const tokens = 6
	for _, name := range append(slices.Clone(cacheModels), "nemotron_h-published") {
		t.Run(name, func(t *testing.T) {
			want, l := newOracle(t, name), cached(t, name, runtime.Options{PrefixCache: 8 << 20})
			r := rand.New(rand.NewPCG(5, 5))
			var used []*cache.Sequence // by the steps so far
			l.batcher.onStep = func(plan []batchItem) error {
				used = append(used, plan[0].g.seq)
				return nil
			}
			turn := func(prompt []int32, cached int) []int32 {
				ids, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: prompt, MaxTokens: tokens,
					IgnoreEOS: true})
				if expect := want.want(prompt, tokens); err != nil || !slices.Equal(ids, expect) {
					t.Fatalf("%v, %v, want %v", ids, err, expect)
				}
				if n := last.Stats.CachedTokens; cached >= 0 && n != cached {
					t.Errorf("%d of %d tokens were cached, want %d", n, len(prompt), cached)
				}
				return slices.Concat(prompt, ids)
			}
			said := turn(randomPrompt(r, l, 20), 0)
			first := used[len(used)-1]
			said = turn(slices.Concat(said, randomPrompt(r, l, 9)), len(said)-1)
			if used[len(used)-1] != first {
				t.Error("the second turn did not continue the sequence of the first")
			}
			turn(randomPrompt(r, l, 20), -1)
			turn(slices.Concat(said, randomPrompt(r, l, 9)), len(said)-1)
			if used[len(used)-1] == first {
				t.Error("the third turn continues a sequence that another request had to displace")
			}
		})
	}
}
