package batch

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// loadModel packs and loads a model. The test fails if arrays are left after the model is closed.
func loadModel(t *testing.T, name string, more ...modelfile.Command) *Engine {
	t.Helper()
	thread := mlxtest.Open(t)
	store, entry := converttest.Pack(t, name, more...)
	before := runtimetest.Arrays(t)
	l, err := Open(t.Context(), thread, store, entry, runtime.Options{Float32: true})
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

func TestGenerateGreedy(t *testing.T) {
	l := loadModel(t, "llama-default")
	ref, err := quality.ReadReference(modeltest.Reference("llama-default"))
	if err != nil {
		t.Fatal(err)
	}
	ids, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: ref.Tokens,
		MaxTokens: len(ref.Greedy), IgnoreEOS: true})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ids, ref.Greedy) {
		t.Errorf("ids %v, want %v", ids, ref.Greedy)
	}
	s := last.Stats
	if last.Done != runtime.DoneLength || s.PromptTokens != len(ref.Tokens) || s.CachedTokens != 0 ||
		s.Tokens != len(ids) ||
		s.PromptTime <= 0 || s.GenerateTime <= 0 {
		t.Errorf("last event %+v", last)
	}
}

// Log-probabilities follow from the reference's logits, for each token when it is emitted.
func TestGenerateLogProbs(t *testing.T) {
	l := loadModel(t, "llama-default")
	ref, err := quality.ReadReference(modeltest.Reference("llama-default"))
	if err != nil {
		t.Fatal(err)
	}
	r := runtime.Request{Prompt: ref.Tokens, MaxTokens: 5, IgnoreEOS: true, LogProbs: true, TopLogProbs: 3}
	r.Sampling.LogitBias = map[int32]float64{ref.Greedy[1]: 1000} // log-probabilities do not include it
	var logs []runtime.LogProb
	for e, err := range l.Generate(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		if len(e.LogProbs) != len(e.IDs) {
			t.Errorf("%d log-probabilities of %d tokens", len(e.LogProbs), len(e.IDs))
		}
		logs = append(logs, e.LogProbs...)
	}
	last := ref.Logits[len(ref.Logits)-ref.Vocab:]
	var sum float64
	for _, v := range last {
		sum += math.Exp(float64(v))
	}
	want := func(id int32) float64 { return float64(last[id]) - math.Log(sum) }
	if len(logs) != 5 || logs[0].ID != ref.Greedy[1] || math.Abs(float64(logs[0].LogProb)-want(ref.Greedy[1])) > 1e-3 {
		t.Fatalf("%+v, want token %d with %g first", logs, ref.Greedy[1], want(ref.Greedy[1]))
	}
	for _, o := range logs[0].Top {
		if math.Abs(float64(o.LogProb)-want(o.ID)) > 1e-3 {
			t.Errorf("token %d has %g, want %g", o.ID, o.LogProb, want(o.ID))
		}
	}
	if len(logs[0].Top) != 3 || logs[0].Top[0].ID != ref.Greedy[0] {
		t.Errorf("the most likely are %+v, want token %d first", logs[0].Top, ref.Greedy[0])
	}
	r.TopLogProbs = runtime.MostTopLogProbs + 1
	if _, _, _, err := runtimetest.Collect(t.Context(), l, r); !errors.Is(err, runtime.ErrSampling) {
		t.Errorf("TopLogProbs beyond its bound: %v", err)
	}
}

func TestGenerateEndsAtEOS(t *testing.T) {
	l := loadModel(t, "llama-default")
	ref, err := quality.ReadReference(modeltest.Reference("llama-default"))
	if err != nil {
		t.Fatal(err)
	}
	l.model.Processor.EOS = []int32{ref.Greedy[5]}
	want := ref.Greedy[:slices.Index(ref.Greedy, ref.Greedy[5])]
	ids, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: ref.Tokens, MaxTokens: 16})
	if err != nil || last.Done != runtime.DoneStop || !slices.Equal(ids, want) {
		t.Errorf("ids %v, %s, %v; want %v", ids, last.Done, err, want)
	}
	l.model.Processor.EOS = nil
	r := runtime.Request{Prompt: ref.Tokens, MaxTokens: 16, EndTokens: []int32{3, ref.Greedy[5]}, LogProbs: true}
	ids, _, last, err = runtimetest.Collect(t.Context(), l, r)
	if err != nil || last.Done != runtime.DoneStop || !slices.Equal(ids, want) {
		t.Errorf("with tokens of its own: ids %v, %s, %v; want %v", ids, last.Done, err, want)
	}
	if end := last.EndLogProb; end == nil || end.ID != ref.Greedy[5] || end.LogProb >= 0 {
		t.Errorf("the log-probability of the end is %+v", end)
	}
	r.IgnoreEOS = true
	if ids, _, last, _ = runtimetest.Collect(t.Context(), l, r); len(ids) != 16 || last.EndLogProb != nil {
		t.Errorf("ids %v, %+v", ids, last)
	}
}

// The demo model generates text. A stop text that spans tokens ends it, and no part of the stop text is emitted.
func TestGenerateText(t *testing.T) {
	l := loadModel(t, "demo")
	prompt, err := l.Processor().Encode(t.Context(), "Once upon a time")
	if err != nil {
		t.Fatal(err)
	}
	r := runtime.Request{Prompt: prompt, MaxTokens: 40, Sampling: runtime.Sampling{Temperature: 0.7, TopP: 0.9,
		Seed: new(int64)}}
	ids, text, _, err := runtimetest.Collect(t.Context(), l, r)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := l.Processor().Tokenizer().Decode(ids, true)
	if err != nil || text != whole {
		t.Errorf("streamed %q, decoded %q, %v", text, whole, err)
	}
	if _, again, _, _ := runtimetest.Collect(t.Context(), l, r); again != text {
		t.Errorf("the same seed wrote %q, then %q", text, again)
	}
	if len(strings.Fields(text)) < 10 {
		t.Fatalf("the demo model wrote %q", text)
	}
	stop := text[10:16]
	r.Stop = []string{stop}
	_, stopped, last, err := runtimetest.Collect(t.Context(), l, r)
	if want := text[:strings.Index(text, stop)]; err != nil || stopped != want || last.Done != runtime.DoneStop {
		t.Errorf("with stop %q: %q, %s, %v; want %q", stop, stopped, last.Done, err, want)
	}
}

func TestGenerateContextEnd(t *testing.T) {
	l := loadModel(t, "llama-default")
	limit := l.Processor().Context()
	ids, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: make([]int32, limit-3),
		IgnoreEOS: true})
	if err != nil || len(ids) != 3 || last.Done != runtime.DoneLength {
		t.Errorf("%d tokens before the context's end, %s, %v; want 3", len(ids), last.Done, err)
	}
}

func TestGenerateRefuses(t *testing.T) {
	l := loadModel(t, "llama-default")
	for _, test := range []struct {
		name, want string
		r          runtime.Request
		is         error
	}{
		{"empty", "the prompt is empty", runtime.Request{}, runtime.ErrPrompt},
		{"too long", "tokens, the model's context", runtime.Request{Prompt: make([]int32, l.Processor().Context())},
			runtime.ErrPrompt},
		{"negative id", "token 1 of the prompt is -5", runtime.Request{Prompt: []int32{1, -5}}, runtime.ErrPrompt},
		{"id beyond the vocabulary", "token 0 of the prompt is 384", runtime.Request{Prompt: []int32{384}},
			runtime.ErrPrompt},
	} {
		test.r.Queued = func() { t.Errorf("%s: queued", test.name) }
		_, _, _, err := runtimetest.Collect(t.Context(), l, test.r)
		if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// A caller learns that its request waits or runs before the first event.
func TestGenerateQueued(t *testing.T) {
	l, queued := loadModel(t, "llama-default"), 0
	r := runtime.Request{Prompt: []int32{1, 2, 3}, MaxTokens: 3, IgnoreEOS: true, Queued: func() { queued++ }}
	for _, err := range l.Generate(t.Context(), r) {
		if err != nil || queued != 1 {
			t.Errorf("queued %d times, %v", queued, err)
		}
	}
}

func TestGenerateCancel(t *testing.T) {
	l := loadModel(t, "llama-default")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	var failed error
	for e, err := range l.Generate(ctx, runtime.Request{Prompt: []int32{1, 2, 3}, IgnoreEOS: true}) {
		if failed = err; err != nil {
			break
		}
		if n += len(e.IDs); n == 4 {
			cancel()
		}
	}
	if !errors.Is(failed, context.Canceled) || n != 4 {
		t.Errorf("%d tokens, then %v", n, failed)
	}
	// The next request still works.
	if ids, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: []int32{1}, MaxTokens: 2,
		IgnoreEOS: true}); err != nil ||
		len(ids) != 2 {
		t.Errorf("after a cancelled request: %v, %v", ids, err)
	}
}

// A caller that stops reading ends the request.
func TestGenerateAbandoned(t *testing.T) {
	l := loadModel(t, "llama-default")
	before := runtimetest.Arrays(t)
	for range l.Generate(t.Context(), runtime.Request{Prompt: []int32{1, 2, 3}, IgnoreEOS: true}) {
		break
	}
	if after := runtimetest.Arrays(t); after != before {
		t.Errorf("%d arrays live, %d before", after, before)
	}
}

func TestGenerateConcurrently(t *testing.T) {
	l := loadModel(t, "llama-default")
	ref, err := quality.ReadReference(modeltest.Reference("llama-default"))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			ids, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: ref.Tokens,
				MaxTokens: len(ref.Greedy), IgnoreEOS: true})
			if err != nil || !slices.Equal(ids, ref.Greedy) {
				t.Errorf("ids %v, %v; want %v", ids, err, ref.Greedy)
			}
		})
	}
	wg.Wait()
}

// A forward pass that exceeds the memory budget fails its request; the next request runs.
func TestGenerateOutOfMemory(t *testing.T) {
	l := loadModel(t, "llama-default")
	budget := func(bytes int64) {
		mlxtest.Do(t, func(e *mlx.Thread) { e.SetBudget(bytes) })
	}
	var old int64
	mlxtest.Do(t, func(e *mlx.Thread) { old = e.Memory().Budget })
	budget(1000)
	_, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: make([]int32, 40), MaxTokens: 1})
	budget(old)
	if !errors.Is(err, mlx.ErrOutOfMemory) {
		t.Errorf("got %v", err)
	}
	if ids, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: []int32{1}, MaxTokens: 2,
		IgnoreEOS: true}); err != nil ||
		len(ids) != 2 {
		t.Errorf("after it: %v, %v", ids, err)
	}
}

func TestGenerateAfterClose(t *testing.T) {
	l := loadModel(t, "llama-default")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: []int32{1}}); !errors.Is(err,
		load.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestDefaults(t *testing.T) {
	param := func(key, value string) modelfile.Command {
		return modelfile.Command{Name: modelfile.Parameter, Key: key, Value: value}
	}
	d := loadModel(t, "llama-default").Processor().Defaults()
	if d.Sampling.Temperature != 0.8 || d.Sampling.TopK != 40 || d.Sampling.TopP != 0.9 || d.Sampling.RepeatLastN != 64 ||
		d.MaxTokens != 0 {
		t.Errorf("without parameters: %+v", d)
	}
	d = loadModel(t, "llama-default", param("temperature", "0"), param("num_predict", "5"), param("stop", "x"),
		param("stop", "y"), param("seed", "3")).Processor().Defaults()
	if d.Sampling.Temperature != 0 || d.MaxTokens != 5 || !slices.Equal(d.Stop, []string{"x", "y"}) ||
		*d.Sampling.Seed != 3 || d.Sampling.TopK != 40 {
		t.Errorf("with parameters: %+v", d)
	}
}
