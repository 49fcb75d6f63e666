package batch

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// loadPair loads a model of testdata with a draft: another model or, without a name, its own head.
func loadPair(t *testing.T, name, draft string, precision recipe.Precision, o runtime.Options) *Engine {
	t.Helper()
	var more []modelfile.Command
	if draft != "" {
		dir := modeltest.Dir(draft)
		if draft == name { // not allowed: copy the folder
			dir = t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(modeltest.Dir(draft))); err != nil {
				t.Fatal(err)
			}
		}
		more = append(more, modelfile.Command{Name: modelfile.Draft, Value: dir})
	}
	store, entry := converttest.PackAs(t, modeltest.Dir(name), "pair", precision, more...)
	before := runtimetest.Arrays(t)
	o.Float32 = true
	l, err := Open(t.Context(), mlxtest.Open(t), store, entry, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if after := runtimetest.Arrays(t); after != before {
			t.Errorf("%d arrays live after Close, %d before Load", after, before)
		}
	})
	return l
}

// draftPairs lists models with each kind of draft: an assistant that reads the target's KV cache, the target's own
// head, also one with a window, and other models, some of which keep a window or a recurrent state.
var draftPairs = []struct{ target, draft string }{
	{"gemma4-e2b", "gemma4_assistant-ordered"},
	{"gemma4-12b", "gemma4_assistant-dense"},
	{"qwen3_5-published", ""},
	{"exaone_moe-published", ""},
	{"llama-default", "llama-mha"},
	{"llama-default", "llama-mistral"},
	{"llama-mistral", "llama-mistral"},
	{"qwen3_5-default", "qwen3_5-default"},
}

// fixed returns a Draft with a fixed depth.
func fixed(n int) runtime.Draft { return runtime.Draft{Mode: runtime.DraftFixed, N: n} }

// Greedy requests generate the same tokens with any drafts, alone and in a batch, and with any prefix cache.
func TestDraftsChangeNothing(t *testing.T) {
	for _, p := range draftPairs {
		t.Run(fmt.Sprint(p.target, " with ", p.draft), func(t *testing.T) {
			l := loadPair(t, p.target, p.draft, recipe.Precision{}, runtime.Options{PrefixCache: 1 << 20, Chunk: 16})
			r := rand.New(rand.NewPCG(1, 9))
			var prompts [][]int32
			for range 6 {
				prompts = append(prompts, randomPrompt(r, l, 2+r.IntN(40)))
			}
			prompts[5] = slices.Concat(prompts[4], prompts[3])
			const n = 16
			var want [][]int32
			for _, p := range prompts {
				ids, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: p, MaxTokens: n, IgnoreEOS: true,
					Draft: runtime.Draft{Mode: runtime.DraftOff}})
				if err != nil || last.Stats.Drafted != 0 || last.Stats.TargetSteps != n {
					t.Fatalf("%+v, %v", last.Stats, err)
				}
				want = append(want, ids)
			}
			var wg sync.WaitGroup
			drafted := make([]int, len(prompts))
			for i, p := range prompts {
				d := []runtime.Draft{{}, fixed(1), fixed(3), fixed(6), {Mode: runtime.DraftOff}, fixed(2)}[i]
				wg.Go(func() {
					ids, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: p, MaxTokens: n, IgnoreEOS: true,
						Draft: d})
					s := last.Stats
					if err != nil || !slices.Equal(ids, want[i]) {
						t.Errorf("%+v: %v, %v; want %v", d, ids, err, want[i])
					}
					if s.Tokens != n || s.TargetSteps != n-s.Accepted || s.Accepted > s.Drafted || d.Mode == runtime.DraftOff &&
						s.Drafted > 0 {
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

// If a model is its own draft and their caches agree, every draft is right: all drafts are accepted, and no step is
// wasted.
func TestDraftOfItself(t *testing.T) {
	for _, name := range cacheModels {
		for _, n := range []int{1, 2, 5} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				l := loadPair(t, name, name, recipe.Precision{}, runtime.Options{PrefixCache: 1 << 20})
				prompt := randomPrompt(rand.New(rand.NewPCG(2, 2)), l, 70)
				for range 2 { // the second time, only the target has the prompt cached
					_, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: prompt, MaxTokens: 31,
						IgnoreEOS: true,
						Draft:     fixed(n)})
					s := last.Stats
					if err != nil || s.Accepted != s.Drafted || s.TargetSteps != 1+(30+n)/(n+1) || s.Accepted != 31-s.TargetSteps {
						t.Errorf("%+v, %v", s, err)
					}
				}
			})
		}
	}
}

// If the draft is the model itself, all drawn drafts are accepted. With a seed, drafts are not drawn, and the tokens
// are the same as without drafts.
func TestSampledDrafts(t *testing.T) {
	for _, name := range cacheModels {
		l := loadPair(t, name, name, recipe.Precision{}, runtime.Options{})
		for _, s := range []runtime.Sampling{{Temperature: 0.8, TopK: 20, TopP: 0.9}, {Temperature: 1.3, MinP: 0.01}} {
			r := runtime.Request{Prompt: []int32{5, 6, 7}, MaxTokens: 31, IgnoreEOS: true, Sampling: s, Draft: fixed(4)}
			_, _, last, err := runtimetest.Collect(t.Context(), l, r)
			if s := last.Stats; err != nil || s.Accepted != s.Drafted || s.TargetSteps != 7 {
				t.Errorf("%s, %+v: %+v, %v", name, r.Sampling, s, err)
			}
			seed := int64(3)
			r.Sampling.Seed = &seed
			ids, _, last, err := runtimetest.Collect(t.Context(), l, r)
			if err != nil || last.Stats.Drafted == 0 {
				t.Errorf("%s, %+v: %+v, %v", name, r.Sampling, last.Stats, err)
			}
			r.Draft = runtime.Draft{Mode: runtime.DraftOff}
			if want, _, _, err := runtimetest.Collect(t.Context(), l, r); err != nil || !slices.Equal(ids, want) {
				t.Errorf("%s, %+v: %v, without drafts %v, %v", name, r.Sampling, ids, want, err)
			}
		}
	}
}

// An end-of-sequence token, a stop text or the token limit ends a request within its drafts.
func TestDraftsEnd(t *testing.T) {
	plain := cached(t, "llama-default", runtime.Options{})
	prompt := []int32{9, 8, 7}
	want, _, _, err := runtimetest.Collect(t.Context(), plain, runtime.Request{Prompt: prompt, MaxTokens: 30,
		IgnoreEOS: true})
	if err != nil {
		t.Fatal(err)
	}
	end := 1
	for slices.Contains(want[:end], want[end]) { // generated for the first time
		end++
	}
	for slices.Contains(want[:end], want[end]) || end < 5 {
		end++
	}
	g := &partlyWrong{texts: map[string][]int32{fmt.Sprint(prompt): slices.Concat(prompt, want)}}
	l := cached(t, "llama-default", runtime.Options{PrefixCache: 1 << 20, Draft: runtime.DraftOptions{Guess: g.guess}})
	l.model.Processor.EOS = []int32{want[end]}
	ids, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: prompt, MaxTokens: 30,
		Draft: fixed(runtime.MaxDraft)})
	s := last.Stats
	if err != nil || last.Done != runtime.DoneStop || !slices.Equal(ids, want[:end]) || s.Drafted != end ||
		s.Accepted != end ||
		s.TargetSteps != 2 {
		t.Errorf("%v, %v, %+v; want %v", ids, err, last, want[:end])
	}
	for _, n := range []int{1, 2, 7} {
		ids, _, last, err = runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: prompt, MaxTokens: n, IgnoreEOS: true,
			Draft: fixed(runtime.MaxDraft)})
		if err != nil || last.Done != runtime.DoneLength || !slices.Equal(ids, want[:n]) ||
			last.Stats.Drafted != max(0, n-2) {
			t.Errorf("%v, %v, %+v; want %v", ids, err, last, want[:n])
		}
	}
	for _, d := range []runtime.Draft{{Mode: "often"}, fixed(0), fixed(runtime.MaxDraft + 1)} {
		if _, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: prompt, Draft: d}); err == nil {
			t.Errorf("%+v passes", d)
		}
	}
}

// Repetitions are drafted by n-gram lookup if there is no other draft.
func TestDraftFromText(t *testing.T) {
	l := cached(t, "llama-default", runtime.Options{})
	r := runtime.Request{Prompt: []int32{9, 8, 7}, MaxTokens: 200, IgnoreEOS: true,
		Draft: runtime.Draft{Mode: runtime.DraftOff}}
	want, _, _, err := runtimetest.Collect(t.Context(), l, r)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []runtime.Draft{{}, fixed(4)} {
		r.Draft = d
		ids, _, last, err := runtimetest.Collect(t.Context(), l, r)
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("%+v: %v, %v; want %v", d, ids, err, want)
		}
		t.Logf("%+v: %+v", d, last.Stats)
	}
}

// If a step with drafts fails, it is repeated without drafts, and the request continues.
func TestDraftsFail(t *testing.T) {
	for _, name := range cacheModels {
		t.Run(name, func(t *testing.T) {
			want := newOracle(t, name)
			prompt := []int32{5, 6, 7}
			expect := want.want(prompt, 20)
			g := &partlyWrong{texts: map[string][]int32{fmt.Sprint(prompt): slices.Concat(prompt, expect)}}
			calls := 0
			l := cached(t, name, runtime.Options{PrefixCache: 1 << 20, Draft: runtime.DraftOptions{Guess: func(tokens []int32,
				n int) []int32 {
				if calls++; calls%2 == 1 {
					return []int32{-1} // an invalid token
				}
				return g.guess(tokens, n)
			}}})
			ids, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: prompt, MaxTokens: 20,
				IgnoreEOS: true, Draft: fixed(4)})
			if err != nil || !slices.Equal(ids, expect) {
				t.Errorf("%v, %v; want %v", ids, err, expect)
			}
		})
	}
}
