package batch

import (
	"errors"
	"slices"
	"testing"

	"github.com/ingotml/ingot/grammar"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// Forced tokens are emitted without the model, except for one.
func TestForcedTokens(t *testing.T) {
	l := cached(t, "demo", runtime.Options{})
	steps := 0
	l.batcher.onStep = func(plan []batchItem) error { steps++; return nil }
	r := prompted(t, l, "Once upon a time", runtime.Request{MaxTokens: 200,
		Format: regex(`\{"name of the animal": "(cat|dog)", "name of its best friend": "(cow|pig)"\}`)})
	ids, text, last, err := runtimetest.Collect(t.Context(), l, r)
	if err != nil || last.Done != runtime.DoneStop || last.Stats.Tokens != len(ids) ||
		last.Stats.PromptTokens != len(r.Prompt) {
		t.Fatalf("%q, %+v, %v", text, last, err)
	}
	if steps >= len(ids)/2 {
		t.Errorf("%d tokens took %d steps", len(ids), steps)
	}
	whole, err := l.Processor().Tokenizer().Decode(ids, true)
	if err != nil || whole != text {
		t.Errorf("streamed %q, the tokens say %q, %v", text, whole, err)
	}
	r.LogProbs = true // the model has to evaluate each token
	logs := 0
	for e, err := range l.Generate(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		if logs += len(e.LogProbs); len(e.LogProbs) != len(e.IDs) {
			t.Errorf("%d log-probabilities of %d tokens", len(e.LogProbs), len(e.IDs))
		}
	}
	if logs < 5 {
		t.Errorf("%d log-probabilities", logs)
	}
}

// Drafts do not change a constrained text: drafts that violate the format are cut, and forced tokens are inserted.
func TestFormatWithDrafts(t *testing.T) {
	l := loadPair(t, "demo", "demo", recipe.Precision{}, runtime.Options{PrefixCache: 1 << 24})
	seed := int64(8)
	for _, f := range []runtime.Format{
		regex(`(\{"name": "[a-z ]{5,30}", "friends": (true|false)\} ){2}`),
		{Kind: runtime.FormatSchema, Source: `{"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 4}`},
		{Kind: runtime.FormatRegex, Source: `<[a-z ]{0,40}>`, After: "a"},
	} {
		for _, s := range []runtime.Sampling{{}, {Temperature: 1, TopK: 50, Seed: &seed},
			{Temperature: 0.7, RepeatPenalty: 1.2, RepeatLastN: 64, Seed: &seed}} {
			for _, n := range []int{12, 70} {
				r := prompted(t, l, "Once upon a time", runtime.Request{MaxTokens: n, Format: f, Sampling: s,
					Draft: runtime.Draft{Mode: runtime.DraftOff}})
				want, text, _, err := runtimetest.Collect(t.Context(), l, r)
				if errors.Is(err, grammar.ErrBudget) {
					continue
				}
				r.Draft = fixed(4)
				ids, _, last, err2 := runtimetest.Collect(t.Context(), l, r)
				if err != nil || err2 != nil || !slices.Equal(ids, want) {
					t.Errorf("%+v, %+v: %v, without drafts %v (%q), %v, %v", f, s, ids, want, text, err, err2)
				}
				if st := last.Stats; n > 20 && (st.Drafted == 0 || st.Accepted == 0 || st.Tokens != len(ids)) {
					t.Errorf("%+v, %+v: %+v", f, s, st)
				}
			}
		}
	}
}

// Drafts are cut at the first one that violates the format, and each row has its own mask.
func TestAllowedDrafts(t *testing.T) {
	l := cached(t, "demo", runtime.Options{})
	g, err := l.begin(t.Context(), prompted(t, l, "Once", runtime.Request{MaxTokens: 30,
		Format: regex(`[a-c]{3}(x|yz)?`)}))
	if err != nil {
		t.Fatal(err)
	}
	id := func(text string) int32 {
		ids, err := l.Processor().Tokenizer().Encode(t.Context(), text, false)
		for i := 1; err == nil && i < len(ids); i++ { // a letter may follow a word-start mark
			if b, ok := l.Processor().Tokenizer().Bytes(ids[i]); ok && string(b) == text {
				return ids[i]
			}
		}
		for i := range l.Processor().Tokenizer().Size() {
			if b, ok := l.Processor().Tokenizer().Bytes(int32(i)); ok && string(b) == text {
				return int32(i)
			}
		}
		t.Fatalf("no token for %q: %v", text, err)
		return 0
	}
	a, x, y, eos := id("a"), id("x"), id("y"), l.model.Processor.EOS[0]
	for _, test := range []struct {
		drafts []int32
		keep   int
	}{
		{nil, 0},
		{[]int32{a, a, a, x}, 4},
		{[]int32{a, x, a}, 1},
		{[]int32{x}, 0},
		{[]int32{a, a, a, eos, a}, 4},
		{[]int32{a, a, a, y, eos}, 4},
		{[]int32{a, eos}, 1},
		{[]int32{-1, 1 << 30}, 0},
	} {
		kept := g.constraint.Allowed(test.drafts, g.budget)
		if !slices.Equal(kept, test.drafts[:test.keep]) {
			t.Errorf("%v of the drafts %v are kept, want %d", kept, test.drafts, test.keep)
		}
		if q := g.sampleRequest(kept, nil); len(q.Masks) != q.Rows() {
			t.Errorf("%d masks of %d rows", len(q.Masks), q.Rows())
		}
	}
	g.seq.Free()
}
