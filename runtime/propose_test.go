package runtime

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/quantize"
)

// paired loads a model of testdata with a draft, which is another one or, with no name, its own.
func paired(t *testing.T, name, draft string, precision convert.Precision, o Options) *Local {
	t.Helper()
	var more []modelfile.Command
	if draft != "" {
		dir := modeltest.Dir(draft)
		if draft == name { // which a draft must not be
			dir = t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(modeltest.Dir(draft))); err != nil {
				t.Fatal(err)
			}
		}
		more = append(more, modelfile.Command{Name: modelfile.Draft, Value: dir})
	}
	store, entry := packAs(t, modeltest.Dir(name), "pair", precision, more...)
	before := arrays(t)
	o.Float32 = true
	l, err := Load(t.Context(), mlxtest.Open(t), store, entry, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if after := arrays(t); after != before {
			t.Errorf("%d arrays live after Close, %d before Load", after, before)
		}
	})
	return l
}

// pairs are models with each kind of draft: one that reads the model's keys, the model's own head, and other models, of which some keep
// a window or a recurrent state.
var pairs = []struct{ target, draft string }{
	{"gemma4-e2b", "gemma4_assistant-ordered"},
	{"gemma4-12b", "gemma4_assistant-dense"},
	{"qwen3_5-published", ""},
	{"llama-default", "llama-mha"},
	{"llama-default", "llama-mistral"},
	{"llama-mistral", "llama-mistral"},
	{"qwen3_5-default", "qwen3_5-default"},
}

// fixed asks for so many drafts.
func fixed(n int) Draft { return Draft{Mode: DraftFixed, N: n} }

// Greedy answers are the same with any drafts, alone and in company, whatever is cached.
func TestDraftsChangeNothing(t *testing.T) {
	for _, p := range pairs {
		t.Run(fmt.Sprint(p.target, " with ", p.draft), func(t *testing.T) {
			l := paired(t, p.target, p.draft, convert.Precision{}, Options{PrefixCache: 1 << 20, Chunk: 16})
			r := rand.New(rand.NewPCG(1, 9))
			var prompts [][]int32
			for range 6 {
				prompts = append(prompts, randomPrompt(r, l, 2+r.IntN(40)))
			}
			prompts[5] = slices.Concat(prompts[4], prompts[3])
			const n = 16
			var want [][]int32
			for _, p := range prompts {
				ids, _, last, err := collect(t.Context(), l, Request{Prompt: p, MaxTokens: n, IgnoreEOS: true, Draft: Draft{Mode: DraftOff}})
				if err != nil || last.Stats.Drafted != 0 || last.Stats.TargetSteps != n {
					t.Fatalf("%+v, %v", last.Stats, err)
				}
				want = append(want, ids)
			}
			var wg sync.WaitGroup
			drafted := make([]int, len(prompts))
			for i, p := range prompts {
				d := []Draft{{}, fixed(1), fixed(3), fixed(6), {Mode: DraftOff}, fixed(2)}[i]
				wg.Go(func() {
					ids, _, last, err := collect(t.Context(), l, Request{Prompt: p, MaxTokens: n, IgnoreEOS: true, Draft: d})
					s := last.Stats
					if err != nil || !slices.Equal(ids, want[i]) {
						t.Errorf("%+v: %v, %v; want %v", d, ids, err, want[i])
					}
					if s.Tokens != n || s.TargetSteps != n-s.Accepted || s.Accepted > s.Drafted || d.Mode == DraftOff && s.Drafted > 0 {
						t.Errorf("%+v: %+v", d, s)
					}
					drafted[i] = s.Drafted
				})
			}
			wg.Wait()
			for i := range 3 {
				if drafted[1+i] == 0 {
					t.Errorf("request %d drafted nothing", 1+i)
				}
			}
		})
	}
}

// A model that is its own draft is always right, so whatever it keeps of a sequence is right as well: all drafts are accepted, and no
// forward is taken that they save.
func TestDraftOfItself(t *testing.T) {
	for _, name := range environments {
		for _, n := range []int{1, 2, 5} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				l := paired(t, name, name, convert.Precision{}, Options{PrefixCache: 1 << 20})
				prompt := randomPrompt(rand.New(rand.NewPCG(2, 2)), l, 70)
				for range 2 { // the second time the model knows the prompt, the draft does not
					_, _, last, err := collect(t.Context(), l, Request{Prompt: prompt, MaxTokens: 31, IgnoreEOS: true, Draft: fixed(n)})
					s := last.Stats
					if err != nil || s.Accepted != s.Drafted || s.TargetSteps != 1+(30+n)/(n+1) || s.Accepted != 31-s.TargetSteps {
						t.Errorf("%+v, %v", s, err)
					}
				}
			})
		}
	}
}

// Drafts that are drawn as the model draws are all accepted when the draft is the model. With a seed they are not drawn: the answer is
// the one without drafts.
func TestSampledDrafts(t *testing.T) {
	for _, name := range environments {
		l := paired(t, name, name, convert.Precision{}, Options{})
		for _, s := range []Sampling{{Temperature: 0.8, TopK: 20, TopP: 0.9}, {Temperature: 1.3, MinP: 0.01}} {
			r := Request{Prompt: []int32{5, 6, 7}, MaxTokens: 31, IgnoreEOS: true, Sampling: s, Draft: fixed(4)}
			_, _, last, err := collect(t.Context(), l, r)
			if s := last.Stats; err != nil || s.Accepted != s.Drafted || s.TargetSteps != 7 {
				t.Errorf("%s, %+v: %+v, %v", name, r.Sampling, s, err)
			}
			seed := int64(3)
			r.Sampling.Seed = &seed
			ids, _, last, err := collect(t.Context(), l, r)
			if err != nil || last.Stats.Drafted == 0 {
				t.Errorf("%s, %+v: %+v, %v", name, r.Sampling, last.Stats, err)
			}
			r.Draft = Draft{Mode: DraftOff}
			if want, _, _, err := collect(t.Context(), l, r); err != nil || !slices.Equal(ids, want) {
				t.Errorf("%s, %+v: %v, without drafts %v, %v", name, r.Sampling, ids, want, err)
			}
		}
	}
}

// checked compares what a draft guesses with what it guesses from the whole text, without any state.
type checked struct {
	*modelDrafter
	t     *testing.T
	round int
}

func (c *checked) propose(round []*batchItem) {
	c.modelDrafter.propose(round)
	for _, s := range round {
		if want := c.fresh(s.g.tokens, len(s.drafts)); !slices.Equal(s.drafts, want) {
			c.t.Errorf("round %d, after %d tokens: drafted %v, want %v", c.round, len(s.g.tokens), s.drafts, want)
		}
		c.round++
	}
}

func (c *checked) fresh(tokens []int32, n int) (drafts []int32) {
	e := c.l.thread
	e.Scope(func() {
		seq, own := cache.NewSequence(c.l.model.Layers()), cache.NewSequence(c.kinds)
		defer seq.Free()
		defer own.Free()
		var hidden *mlx.Array
		if c.tokenShift > 0 {
			hidden = c.l.model.Forward(nn.NewBatch(e, nn.Part{Seq: seq, Tokens: tokens[:len(tokens)-1], All: true}))
		}
		said := tokens[c.tokenShift:]
		if len(c.kinds) == 0 {
			said, hidden = tokens[len(tokens)-1:], lastRow(hidden)
		}
		for range n {
			b := nn.NewBatch(e, nn.Part{Seq: own, Tokens: said})
			var scores *mlx.Array
			hidden, scores = c.draft.Step(&models.DraftBatch{
				Batch: b, Target: []*cache.Sequence{seq}, Vectors: c.l.model.Embed(b.Tokens), Hidden: hidden,
			})
			said = []int32{int32(mlx.ArgMax(scores, -1, false).Int())}
			drafts = append(drafts, said...)
		}
	})
	return drafts
}

// What a draft keeps of a text is right, however much of what it guessed was wrong: in each step it guesses what it would guess from the
// whole text.
func TestDraftState(t *testing.T) {
	for _, p := range pairs {
		for _, as := range []quantize.Type{0, quantize.Int4} {
			if as != 0 && p.target != p.draft {
				continue // all is wrong anyway
			}
			t.Run(fmt.Sprint(p.target, " with ", p.draft, " ", as), func(t *testing.T) {
				l := paired(t, p.target, p.draft, convert.Precision{Draft: as}, Options{Chunk: 50})
				l.batcher.drafter = &checked{modelDrafter: newModelDrafter(l), t: t}
				r := rand.New(rand.NewPCG(3, 2))
				var wg sync.WaitGroup
				for _, n := range []int{2, 5} { // beside each other
					prompt := randomPrompt(r, l, 10+16*n)
					wg.Go(func() {
						_, _, last, err := collect(t.Context(), l, Request{Prompt: prompt, MaxTokens: 14, IgnoreEOS: true, Draft: fixed(n)})
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

// liar guesses what is known to come, but for a share of lies.
type liar struct {
	mu    sync.Mutex
	r     *rand.Rand
	truth map[string][]int32 // by the first tokens
	lies  float64
	vocab int
}

const liarKey = 3

func (g *liar) guess(tokens []int32, n int) []int32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.truth[fmt.Sprint(tokens[:liarKey])]
	if len(all) <= len(tokens) {
		return nil
	}
	drafts := slices.Clone(all[len(tokens):min(len(all), len(tokens)+n)])
	for i := range drafts {
		if g.lies > 0 && g.r.Float64() < g.lies {
			drafts[i] = int32(g.r.IntN(g.vocab))
		}
	}
	return drafts
}

// Whatever is guessed, and however much of it is right, requests say the same as without: in all cache environments, sampled or not, with
// cancels, when memory runs out, and when steps fail.
func TestLies(t *testing.T) {
	for i, name := range append(slices.Clone(environments), "gemma4-e2b", "qwen3_5-published") {
		for _, lies := range [][]float64{{0, 0.3}, {0.3, 1}, {0, 0.3}, {0.3}, {1}}[i] {
			t.Run(fmt.Sprint(name, " ", lies), func(t *testing.T) {
				plain := cached(t, name, Options{})
				g := &liar{r: rand.New(rand.NewPCG(4, 4)), truth: map[string][]int32{}, lies: lies, vocab: int(plain.config.Facts().Vocab)}
				l := cached(t, name, Options{PrefixCache: 200 << 10, Memory: 400 << 10, Chunk: 24, Draft: DraftOptions{Guess: g.guess}})
				r := rand.New(rand.NewPCG(5, 5))
				const n = 16
				var requests []Request
				var want [][]int32
				for i := range 6 {
					q := Request{Prompt: randomPrompt(r, l, liarKey+r.IntN(50)), MaxTokens: n, IgnoreEOS: true, Draft: Draft{Mode: DraftOff}}
					if i%3 == 1 {
						seed := int64(i)
						q.Sampling = Sampling{Temperature: 0.8, TopP: 0.9, TopK: 20, RepeatPenalty: 1.1, RepeatLastN: 16, Seed: &seed}
					}
					ids, _, _, err := collect(t.Context(), plain, q)
					if err != nil {
						t.Fatal(err)
					}
					q.Draft = []Draft{{}, fixed(4), fixed(1), fixed(9)}[i%4]
					requests, want = append(requests, q), append(want, ids)
					g.truth[fmt.Sprint(q.Prompt[:liarKey])] = slices.Concat(q.Prompt, ids)
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
						var last Stats
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
				case lies == 0 && accepted != drafted:
					t.Errorf("%d of %d drafts were accepted, all of them true", accepted, drafted)
				case lies == 1 && accepted*4 > drafted:
					t.Errorf("%d of %d drafts were accepted, all of them lies", accepted, drafted)
				}
			})
		}
	}
}

// The end of a text ends a request inside what was drafted, as does a stop text and the last token that it may say.
func TestDraftsEnd(t *testing.T) {
	plain := cached(t, "llama-default", Options{})
	prompt := []int32{9, 8, 7}
	want, _, _, err := collect(t.Context(), plain, Request{Prompt: prompt, MaxTokens: 30, IgnoreEOS: true})
	if err != nil {
		t.Fatal(err)
	}
	end := 1
	for slices.Contains(want[:end], want[end]) { // said for the first time
		end++
	}
	for slices.Contains(want[:end], want[end]) || end < 5 {
		end++
	}
	g := &liar{truth: map[string][]int32{fmt.Sprint(prompt): slices.Concat(prompt, want)}}
	l := cached(t, "llama-default", Options{PrefixCache: 1 << 20, Draft: DraftOptions{Guess: g.guess}})
	l.eos = []int32{want[end]}
	ids, _, last, err := collect(t.Context(), l, Request{Prompt: prompt, MaxTokens: 30, Draft: fixed(MaxDraft)})
	s := last.Stats
	if err != nil || last.Done != DoneStop || !slices.Equal(ids, want[:end]) || s.Drafted != end || s.Accepted != end || s.TargetSteps != 2 {
		t.Errorf("%v, %v, %+v; want %v", ids, err, last, want[:end])
	}
	for _, n := range []int{1, 2, 7} {
		ids, _, last, err = collect(t.Context(), l, Request{Prompt: prompt, MaxTokens: n, IgnoreEOS: true, Draft: fixed(MaxDraft)})
		if err != nil || last.Done != DoneLength || !slices.Equal(ids, want[:n]) || last.Stats.Drafted != max(0, n-2) {
			t.Errorf("%v, %v, %+v; want %v", ids, err, last, want[:n])
		}
	}
	for _, d := range []Draft{{Mode: "often"}, fixed(0), fixed(MaxDraft + 1)} {
		if _, _, _, err := collect(t.Context(), l, Request{Prompt: prompt, Draft: d}); err == nil {
			t.Errorf("%+v passes", d)
		}
	}
}

// What repeats itself is drafted from the text where there is no other draft.
func TestDraftFromText(t *testing.T) {
	l := cached(t, "llama-default", Options{})
	r := Request{Prompt: []int32{9, 8, 7}, MaxTokens: 200, IgnoreEOS: true, Draft: Draft{Mode: DraftOff}}
	want, _, _, err := collect(t.Context(), l, r)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []Draft{{}, fixed(4)} {
		r.Draft = d
		ids, _, last, err := collect(t.Context(), l, r)
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("%+v: %v, %v; want %v", d, ids, err, want)
		}
		t.Logf("%+v: %+v", d, last.Stats)
	}
}

// A step that fails while something is drafted is taken again without, and the request goes on.
func TestDraftsFail(t *testing.T) {
	for _, name := range environments {
		t.Run(name, func(t *testing.T) {
			want := newOracle(t, name)
			prompt := []int32{5, 6, 7}
			expect := want.want(prompt, 20)
			g := &liar{truth: map[string][]int32{fmt.Sprint(prompt): slices.Concat(prompt, expect)}}
			calls := 0
			l := cached(t, name, Options{PrefixCache: 1 << 20, Draft: DraftOptions{Guess: func(tokens []int32, n int) []int32 {
				if calls++; calls%2 == 1 {
					return []int32{-1} // no token
				}
				return g.guess(tokens, n)
			}}})
			ids, _, _, err := collect(t.Context(), l, Request{Prompt: prompt, MaxTokens: 20, IgnoreEOS: true, Draft: fixed(4)})
			if err != nil || !slices.Equal(ids, expect) {
				t.Errorf("%v, %v; want %v", ids, err, expect)
			}
		})
	}
}
