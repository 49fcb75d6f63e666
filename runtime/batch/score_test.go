package batch

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// score returns the log-probabilities of a request's prompt.
func score(t *testing.T, l *Engine, r runtime.Request) (logs []runtime.LogProb, last runtime.Event) {
	t.Helper()
	for e, err := range l.Generate(t.Context(), r) {
		if err != nil {
			t.Error(err)
		}
		logs, last = append(logs, e.PromptLogProbs...), e
	}
	return logs, last
}

// scores returns the log-probabilities of a request's prompt if it wants them.
func (o *oracle) scores(r runtime.Request) []runtime.LogProb {
	if !r.PromptLogProbs {
		return nil
	}
	logs, _ := score(o.t, o.Engine, runtime.Request{Prompt: r.Prompt, Pictures: r.Pictures, TopLogProbs: r.TopLogProbs,
		PromptLogProbs: true, PromptOnly: true})
	return logs
}

// sameScores compares log-probabilities.
func sameScores(t *testing.T, got, want []runtime.LogProb, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d log-probabilities, want %d", len(got), len(want))
		return
	}
	for i, w := range want {
		if got[i].ID != w.ID || math.Abs(float64(got[i].LogProb-w.LogProb)) > tolerance {
			t.Errorf("token %d is %+v, want %+v", i+1, got[i], w)
			return
		}
	}
}

// referenceScores returns what the logits of transformers say about the tokens of a reference after the first.
func referenceScores(t *testing.T, name string) (tokens []int32, want []runtime.LogProb) {
	t.Helper()
	ref, err := quality.ReadReference(modeltest.Reference(name))
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range ref.Tokens[1:] {
		row := ref.Logits[i*ref.Vocab:][:ref.Vocab]
		var sum float64
		for _, v := range row {
			sum += math.Exp(float64(v))
		}
		want = append(want, runtime.LogProb{ID: id, LogProb: row[id] - float32(math.Log(sum))})
	}
	return ref.Tokens, want
}

// The log-probabilities of a prompt are those of transformers' logits, in chunks and blocks of any size, in a batch,
// and with keys and values in q8 nearly so.
func TestPromptLogProbs(t *testing.T) {
	for _, name := range []string{"llama-default", "qwen3_5-default", "gemma4-e2b", "deepseek_v3-published"} {
		tokens, want := referenceScores(t, name)
		for _, c := range []struct {
			o     runtime.Options
			block int // rows; 0: the default
			near  float64
		}{
			{runtime.Options{}, 0, 1e-3},
			{runtime.Options{Chunk: 3, PrefixCache: 1 << 20}, 2, 1e-3},
			{runtime.Options{KV: runtime.KVQ8}, 5, 0.2},
		} {
			t.Run(fmt.Sprint(name, " ", c.block), func(t *testing.T) {
				l := cached(t, name, c.o)
				if c.block > 0 {
					l.batcher.stepper.scoreRows = c.block
				}
				var all sync.WaitGroup
				for i := range 3 {
					all.Go(func() { compareScores(t, l, tokens, i, want, c.near) })
				}
				all.Wait()
			})
		}
	}
}

// compareScores scores tokens with some of the most likely ones at each position, in a request that generates two
// tokens or, with two of the most likely ones, none.
func compareScores(t *testing.T, l *Engine, tokens []int32, top int, want []runtime.LogProb, near float64) {
	t.Helper()
	r := runtime.Request{Prompt: tokens, PromptLogProbs: true, TopLogProbs: top, MaxTokens: 2, IgnoreEOS: true,
		PromptOnly: top == 2}
	logs, last := score(t, l, r)
	sameScores(t, logs, want, near)
	if generated := last.Stats.Tokens; last.Done != runtime.DoneLength || (generated == 0) != r.PromptOnly {
		t.Errorf("the last event is %+v", last)
	}
	for _, p := range logs {
		if len(p.Top) != top || top > 0 && p.Top[0].LogProb < p.LogProb {
			t.Errorf("%+v, want %d most likely tokens", p, top)
		}
	}
}

// A prompt that is scored restores nothing, but others restore what it has stored, and share what it evaluates.
func TestPromptLogProbsAndPrefixCache(t *testing.T) {
	for _, name := range cacheModels {
		t.Run(name, func(t *testing.T) { scoreCached(t, cached(t, name, runtime.Options{PrefixCache: 4 << 20, Chunk: 8})) })
	}
}

func scoreCached(t *testing.T, l *Engine) {
	prompt := make([]int32, 60)
	for i := range prompt {
		prompt[i] = int32(5 + i%17)
	}
	r := runtime.Request{Prompt: prompt, PromptLogProbs: true, PromptOnly: true}
	want, _ := score(t, l, r)
	for range 2 {
		logs, last := score(t, l, r)
		sameScores(t, logs, want, 1e-3)
		if len(want) != len(prompt)-1 || last.Stats.CachedTokens != 0 {
			t.Errorf("%d log-probabilities, %+v", len(want), last.Stats)
		}
	}
	plain := runtime.Request{Prompt: append(prompt[:len(prompt):len(prompt)], 9, 10, 11), MaxTokens: 1}
	if _, last := score(t, l, plain); last.Stats.CachedTokens < 50 {
		t.Errorf("the next prompt restores %d tokens", last.Stats.CachedTokens)
	}
}

// A failed step repeats no log-probability and leaves none out.
func TestPromptLogProbsAfterFailure(t *testing.T) {
	tokens, want := referenceScores(t, "llama-default")
	l := cached(t, "llama-default", runtime.Options{Chunk: 4, PrefixCache: 1 << 20})
	shared, failed := 0, 0
	l.batcher.onStep = func(plan []batchItem) error {
		if len(plan) > 1 { // what fails restarts alone
			if shared++; shared == 2 || shared == 5 {
				failed++
				return errors.New("a kernel failed")
			}
		}
		return nil
	}
	together(t, l, 2)
	var all sync.WaitGroup
	for i, n := range []int{20, len(tokens)} { // the shorter one gets what the other leaves of a step's rows
		all.Go(func() {
			logs, _ := score(t, l, runtime.Request{Prompt: tokens[:n], PromptLogProbs: true, PromptOnly: true,
				Priority: i})
			sameScores(t, logs, want[:n-1], 1e-3)
		})
	}
	all.Wait()
	if failed == 0 {
		t.Error("no step failed")
	}
}

// A request that generates nothing may fill the whole context.
func TestPromptOnly(t *testing.T) {
	l := loadModel(t, "llama-default")
	limit := l.Processor().Context()
	for n, ok := range map[int]bool{1: true, 2: true, limit: true, limit + 1: false} {
		prompt := make([]int32, n)
		ids, text, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: prompt, PromptOnly: true,
			Format: runtime.Format{Kind: runtime.FormatJSON}})
		if !ok {
			if !errors.Is(err, runtime.ErrPrompt) {
				t.Errorf("a prompt of %d tokens: %v", n, err)
			}
			continue
		}
		if err != nil || len(ids) > 0 || text != "" || last.Done != runtime.DoneLength || last.Stats.PromptTokens != n {
			t.Errorf("a prompt of %d tokens: %v %q %+v %v", n, ids, text, last, err)
		}
	}
}
