package batch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/draft"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// checkedDrafter compares the drafts with those from the whole text without any cached state.
type checkedDrafter struct {
	draft.Drafter
	m     *load.Model
	t     *testing.T
	round int
}

func (c *checkedDrafter) Propose(round []*draft.Item) {
	c.Drafter.Propose(round)
	for _, s := range round {
		if want := c.fresh(s.Text.Tokens, len(s.Drafts)); !slices.Equal(s.Drafts, want) {
			c.t.Errorf("round %d, after %d tokens: drafted %v, want %v", c.round, len(s.Text.Tokens), s.Drafts, want)
		}
		c.round++
	}
}

func (c *checkedDrafter) fresh(tokens []int32, n int) (drafts []int32) {
	e, kinds, tokenShift := c.m.Thread, c.m.Draft.Layers(), 1
	if models.Standalone(c.m.Draft) {
		tokenShift = 0
	}
	e.Scope(func() {
		seq, own := cache.NewSequence(c.m.Target.Layers()), cache.NewSequence(kinds)
		defer seq.Free()
		defer own.Free()
		var hidden *mlx.Array
		if tokenShift > 0 {
			hidden = c.m.Target.Forward(nn.NewBatch(e, nn.Part{Seq: seq, Tokens: tokens[:len(tokens)-1], All: true}))
		}
		input := tokens[tokenShift:]
		if len(kinds) == 0 {
			input, hidden = tokens[len(tokens)-1:], mlx.SliceAxis(hidden, 0, mlx.Range(hidden.Dim(0)-1, hidden.Dim(0)))
		}
		for range n {
			b := nn.NewBatch(e, nn.Part{Seq: own, Tokens: input})
			var logits *mlx.Array
			hidden, logits = c.m.Draft.Step(&models.DraftBatch{
				Batch: b, Target: []*cache.Sequence{seq}, Vectors: c.m.Target.Embed(b.Tokens), Hidden: hidden,
			})
			input = []int32{int32(mlx.ArgMax(logits, -1, false).Int())}
			drafts = append(drafts, input...)
		}
	})
	return drafts
}

// A draft's cached state stays right, however many of its drafts were rejected: in each step it drafts the same as from
// the whole text.
func TestDraftState(t *testing.T) {
	for _, p := range draftPairs {
		for _, as := range []quantize.Type{0, quantize.Int4} {
			if as != 0 && p.target != p.draft {
				continue // no draft is right anyway
			}
			t.Run(fmt.Sprint(p.target, " with ", p.draft, " ", as), func(t *testing.T) {
				l := loadPair(t, p.target, p.draft, recipe.Precision{Draft: as}, runtime.Options{Chunk: 50})
				l.batcher.drafting.drafter = &checkedDrafter{Drafter: draft.New(l.model, runtime.DraftOptions{}), m: l.model, t: t}
				r := rand.New(rand.NewPCG(3, 2))
				var wg sync.WaitGroup
				for _, n := range []int{2, 5} { // in one batch
					prompt := randomPrompt(r, l, 10+16*n)
					wg.Go(func() {
						_, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: prompt, MaxTokens: 14,
							IgnoreEOS: true,
							Draft:     fixed(n)})
						if err != nil {
							t.Error(err)
						}
						t.Logf("%d of %d accepted", last.Stats.Accepted, last.Stats.Drafted)
					})
				}
				wg.Wait()
			})
		}
	}
}

// partlyWrong drafts the known continuation of a text, with a share of wrong tokens.
type partlyWrong struct {
	mu         sync.Mutex
	r          *rand.Rand
	texts      map[string][]int32 // by their first tokens
	wrongShare float64
	vocab      int
}

const keyTokens = 3

func (g *partlyWrong) guess(tokens []int32, n int) []int32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.texts[fmt.Sprint(tokens[:keyTokens])]
	if len(all) <= len(tokens) {
		return nil
	}
	drafts := slices.Clone(all[len(tokens):min(len(all), len(tokens)+n)])
	for i := range drafts {
		if g.wrongShare > 0 && g.r.Float64() < g.wrongShare {
			drafts[i] = int32(g.r.IntN(g.vocab))
		}
	}
	return drafts
}

// Whatever is drafted, and however much of it is right, requests generate the same tokens as without drafts: with all
// kinds of caches, greedy or sampled, with cancellations, preemption and failed steps.
func TestWrongDrafts(t *testing.T) {
	for i, name := range append(slices.Clone(cacheModels), "gemma4-e2b", "qwen3_5-published") {
		for _, wrongShare := range [][]float64{{0, 0.3}, {0.3, 1}, {0, 0.3}, {0.3}, {1}}[i] {
			t.Run(fmt.Sprint(name, " ", wrongShare), func(t *testing.T) {
				plain := cached(t, name, runtime.Options{})
				g := &partlyWrong{r: rand.New(rand.NewPCG(4, 4)), texts: map[string][]int32{}, wrongShare: wrongShare,
					vocab: int(plain.model.Processor.Config.Facts().Vocab)}
				l := cached(t, name, runtime.Options{PrefixCache: 200 << 10, Memory: 400 << 10, Chunk: 24,
					Draft: runtime.DraftOptions{Guess: g.guess}})
				r := rand.New(rand.NewPCG(5, 5))
				const n = 16
				var requests []runtime.Request
				var want [][]int32
				for i := range 6 {
					q := runtime.Request{Prompt: randomPrompt(r, l, keyTokens+r.IntN(50)), MaxTokens: n, IgnoreEOS: true,
						Draft: runtime.Draft{Mode: runtime.DraftOff}}
					if i%3 == 1 {
						seed := int64(i)
						q.Sampling = runtime.Sampling{Temperature: 0.8, TopP: 0.9, TopK: 20, RepeatPenalty: 1.1, RepeatLastN: 16,
							Seed: &seed}
					}
					ids, _, _, err := runtimetest.Collect(t.Context(), plain, q)
					if err != nil {
						t.Fatal(err)
					}
					q.Draft = []runtime.Draft{{}, fixed(4), fixed(1), fixed(9)}[i%4]
					requests, want = append(requests, q), append(want, ids)
					g.texts[fmt.Sprint(q.Prompt[:keyTokens])] = slices.Concat(q.Prompt, ids)
				}
				var accepted, drafted, steps int
				var mu sync.Mutex
				var wg sync.WaitGroup
				for i, q := range requests {
					leave := 0
					if i%4 == 3 {
						leave = 7
					}
					wg.Go(func() {
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						var ids []int32
						var last runtime.Stats
						for e, err := range l.Generate(ctx, q) {
							if err != nil {
								if leave == 0 {
									t.Error(err)
								}
								break
							}
							ids, last = append(ids, e.IDs...), e.Stats
							if leave > 0 && len(ids) >= leave {
								cancel()
							}
						}
						if leave == 0 && len(ids) != n || !slices.Equal(ids, want[i][:len(ids)]) {
							t.Errorf("request %d: %v, want %v", i, ids, want[i])
						}
						mu.Lock()
						defer mu.Unlock()
						if leave == 0 {
							accepted, drafted, steps = accepted+last.Accepted, drafted+last.Drafted, steps+last.TargetSteps
						}
					})
				}
				wg.Wait()
				t.Logf("%d of %d drafts accepted, %d steps", accepted, drafted, steps)
				switch {
				case drafted == 0:
					t.Error("nothing was drafted")
				case wrongShare == 0 && accepted != drafted:
					t.Errorf("%d of %d drafts were accepted, all of them true", accepted, drafted)
				case wrongShare == 1 && accepted*4 > drafted:
					t.Errorf("%d of %d drafts were accepted, all of them wrong", accepted, drafted)
				}
			})
		}
	}
}
