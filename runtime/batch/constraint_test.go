package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/ingotml/ingot/grammar"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/constraint"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

func regex(source string) runtime.Format {
	return runtime.Format{Kind: runtime.FormatRegex, Source: source}
}

// prompted returns a request to the demo model.
func prompted(t *testing.T, l *Engine, text string, r runtime.Request) runtime.Request {
	t.Helper()
	var err error
	if r.Prompt, err = l.Processor().Encode(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	return r
}

// Generated text satisfies its format: greedy or sampled, alone or in a batch, and with any prefix cache.
func TestFormat(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		t.Run(fmt.Sprint("ahead ", ahead), func(t *testing.T) {
			l := cached(t, "demo", runtime.Options{PrefixCache: 1 << 24})
			l.batcher.stepper.sendsAhead = ahead
			formats := []runtime.Format{
				regex(`(yes|no), [0-9]{2,4} (cats|dogs)\.`),
				regex(`[a-z]+( [a-z]+){3}`),
				regex(`"[^"\\]*"`),
				{Kind: runtime.FormatJSON},
				{Kind: runtime.FormatSchema, Source: `{"type": "object", ` +
					`"properties": {"name": {"type": "string"}, "legs": {"type": "integer", "minimum": 0}}, ` +
					`"required": ["name", "legs"], "additionalProperties": false}`},
				{Kind: runtime.FormatEBNF, Source: `root ::= "(" root ")" | [a-z]*`},
			}
			holds := func(f runtime.Format, text string) bool {
				switch f.Kind {
				case runtime.FormatRegex:
					return regexp.MustCompile(`^(?s:` + f.Source + `)$`).MatchString(text)
				case runtime.FormatJSON:
					var v map[string]any
					return json.Unmarshal([]byte(text), &v) == nil
				case runtime.FormatSchema:
					v := struct {
						Name *string
						Legs *int64
					}{}
					d := json.NewDecoder(strings.NewReader(text))
					d.DisallowUnknownFields()
					return d.Decode(&v) == nil && v.Name != nil && v.Legs != nil && *v.Legs >= 0
				}
				inner := strings.Trim(text, "()")
				n := (len(text) - len(inner)) / 2
				return text == strings.Repeat("(", n)+inner+strings.Repeat(")", n)
			}
			var wg sync.WaitGroup
			for i := range 25 {
				seed := int64(i)
				f := formats[i%len(formats)]
				r := prompted(t, l, "Once upon a time, "+strings.Repeat("there ", i%7), runtime.Request{MaxTokens: 20 + i,
					Format: f})
				if i%3 > 0 {
					r.Sampling = runtime.Sampling{Temperature: float64(i%3) * 0.8, TopK: 40 * (i % 2), Seed: &seed, RepeatPenalty: 1.1,
						RepeatLastN: 64}
				}
				wg.Go(func() {
					ids, text, last, err := runtimetest.Collect(t.Context(), l, r)
					if err != nil || !holds(f, text) {
						t.Errorf("%+v: %q (%d tokens, %s), %v", f, text, len(ids), last.Done, err)
					}
					if len(ids) != last.Stats.Tokens || len(ids) > r.MaxTokens {
						t.Errorf("%+v: %d tokens of %d, counted %d", f, len(ids), r.MaxTokens, last.Stats.Tokens)
					}
					_, again, _, err := runtimetest.Collect(t.Context(), l, r)
					if err != nil || r.Sampling.Seed != nil && again != text {
						t.Errorf("%+v: %q, then %q, %v", f, text, again, err)
					}
				})
			}
			wg.Wait()
		})
	}
}

// Generation ends when the format allows no further token, or when the remaining budget does.
func TestFormatEnds(t *testing.T) {
	l := cached(t, "demo", runtime.Options{})
	for _, test := range []struct {
		name, source string
		tokens       int
		ignoreEOS    bool
		want         string // "" matches any text
		done         runtime.DoneReason
	}{
		{"nothing to add", `(a|b)c`, 10, false, "", runtime.DoneStop},
		{"nothing to add, at the budget's end", `[ab]`, 1, false, "", runtime.DoneStop},
		{"nothing to choose", `the end`, 10, false, "the end", runtime.DoneStop},
		{"an end without an end token", `abc?`, 20, true, "", runtime.DoneStop},
		{"more could come", `[0-9]+`, 3, true, "", runtime.DoneLength},
		{"the budget closes it", `\([a-z ]*\)`, 6, true, "", runtime.DoneStop},
	} {
		r := prompted(t, l, "Once upon a time", runtime.Request{MaxTokens: test.tokens, IgnoreEOS: test.ignoreEOS,
			Format: regex(test.source)})
		ids, text, last, err := runtimetest.Collect(t.Context(), l, r)
		if err != nil || last.Done != test.done || test.want != "" && text != test.want ||
			!regexp.MustCompile(`^(`+test.source+`)$`).MatchString(text) {
			t.Errorf("%s: %q (%d tokens), %s, %v", test.name, text, len(ids), last.Done, err)
		}
	}
}

// A format that starts after a text does not constrain the text before it.
func TestFormatAfter(t *testing.T) {
	l := cached(t, "demo", runtime.Options{})
	r := prompted(t, l, "Once upon a time", runtime.Request{MaxTokens: 60, IgnoreEOS: true})
	freeIDs, free, _, err := runtimetest.Collect(t.Context(), l, r)
	if err != nil {
		t.Fatal(err)
	}
	r.Format = regex(`<(yes|no)>[0-9]{3}`)
	r.Format.After = free[20:26]
	_, text, last, err := runtimetest.Collect(t.Context(), l, r)
	if err != nil || last.Done != runtime.DoneStop || !strings.HasPrefix(text, free[:26]) ||
		!regexp.MustCompile(`<(yes|no)>[0-9]{3}$`).MatchString(text) {
		t.Errorf("after %q: %q, %s, %v", r.Format.After, text, last.Done, err)
	}
	for _, drafts := range [][]int32{nil, {5, 6, 7}} {
		g, err := l.begin(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if kept := g.constraint.Allowed(drafts, g.budget); len(kept) != len(drafts) {
			t.Errorf("before the format, %v of the drafts %v are kept", kept, drafts)
		}
		ids, _ := l.Processor().Tokenizer().Encode(t.Context(), free[:40], false)
		if kept := g.constraint.Allowed(ids, g.budget); len(kept) >= len(ids) || len(kept) < 3 {
			t.Errorf("%d of %d drafts are kept, which extend into the format", len(kept), len(ids))
		}
		g.seq.Free()
	}
	// The start may be within a token: the format applies to the rest of it, too.
	split := 0
	for cut := 20; cut < 32; cut++ {
		for _, drafts := range []int{0, 3} {
			r.Format.After, r.Format.Source = free[10:cut], `<(yes|no)>[0-9]{3}`
			r.Draft = runtime.Draft{}
			if drafts > 0 {
				r.Draft = runtime.Draft{Mode: runtime.DraftFixed, N: drafts}
			}
			ids, text, _, err := runtimetest.Collect(t.Context(), l, r)
			if err != nil || !regexp.MustCompile(`^`+regexp.QuoteMeta(free[:cut])+`<(yes|no)>[0-9]{3}$`).MatchString(text) {
				t.Errorf("after %q: %q, %v", r.Format.After, text, err)
			}
			if again, err := l.Processor().Tokenizer().Decode(ids, true); err != nil || again != text {
				t.Errorf("after %q: tokens of %q for %q, %v", r.Format.After, again, text, err)
			}
			r.Format.Source = regexp.QuoteMeta(free[cut:40]) + `[0-9]{3}`
			_, text, _, err = runtimetest.Collect(t.Context(), l, r)
			if err != nil || !strings.HasPrefix(text, free[:40]) {
				t.Errorf("after %q, as without a format: %q, %v", r.Format.After, text, err)
			}
		}
		whole := false
		for n := range freeIDs {
			text, err := l.Processor().Tokenizer().Decode(freeIDs[:n], true)
			whole = whole || err == nil && strings.TrimSpace(text) == strings.TrimSpace(free[:cut])
		}
		if !whole {
			split++
		}
	}
	if split == 0 {
		t.Error("no start was within a token")
	}
	r.Draft, r.Format.Source = runtime.Draft{}, `<(yes|no)>[0-9]{3}`
	r.Format.After = "this never comes"
	if _, text, last, err := runtimetest.Collect(t.Context(), l, r); err != nil || text != free ||
		last.Done != runtime.DoneLength {
		t.Errorf("a start that never comes: %q, %s, %v; want %q", text, last.Done, err, free)
	}
	r.Format.After, r.Format.Source = free[len(free)-3:], `[0-9]{20}`
	if _, _, last, err := runtimetest.Collect(t.Context(), l, r); err != nil || last.Done != runtime.DoneLength {
		t.Errorf("a start that comes too late: %s, %v", last.Done, err)
	}

	// Before the text that it is behind, the start does not count.
	r.Format.Source, r.Format.After = `<(yes|no)>`, "a"
	first, second := strings.Index(free, "a")+1, 30+strings.Index(free[30:], "a")+1
	for _, c := range []struct {
		behind, open string
		from         int // where the format starts
	}{
		{"", "", first}, {free[20:30], "", second}, {free[20:30], strings.TrimSpace(free[:6]), second},
		{free[20:30], "never", first}, {"this never comes", "", len(free)},
	} {
		r.Format.Behind, r.Format.Open = c.behind, c.open
		_, text, _, err := runtimetest.Collect(t.Context(), l, r)
		want := free[:c.from]
		if err != nil || text != want+"<yes>" && text != want+"<no>" && (text != want || want != free) {
			t.Errorf("%+v: %q, %v", c, text, err)
		}
	}
	r.Format.Behind, r.Format.Open = "", ""

	// An optional format may exceed the budget; it is then cut off.
	r.Format = regex(`[0-9]{80}`)
	r.Format.After = free[20:26]
	if _, _, _, err := runtimetest.Collect(t.Context(), l, r); !errors.Is(err, runtime.ErrFormat) {
		t.Errorf("a format of 80 digits in 60 tokens: %v", err)
	}
	r.Format.Optional = true
	if _, text, last, err := runtimetest.Collect(t.Context(), l, r); err != nil || last.Done != runtime.DoneLength ||
		!regexp.MustCompile(`^`+regexp.QuoteMeta(free[:26])+`[0-9]{20,79}$`).MatchString(text) {
		t.Errorf("an optional format of 80 digits: %q, %s, %v", text, last.Done, err)
	}
	r.Format.After = "this never comes"
	if _, text, _, err := runtimetest.Collect(t.Context(), l, r); err != nil || text != free {
		t.Errorf("an optional format that is not begun: %q, %v; want %q", text, err, free)
	}
}

// The text before a format may be bounded, even without a format.
func TestWithin(t *testing.T) {
	l := cached(t, "demo", runtime.Options{})
	r := prompted(t, l, "Once upon a time", runtime.Request{MaxTokens: 60, IgnoreEOS: true})
	ids, free, _, err := runtimetest.Collect(t.Context(), l, r)
	if err != nil {
		t.Fatal(err)
	}
	const cut = ". The end!"
	begin, err := l.Processor().Tokenizer().Decode(ids[:5], true)
	if err != nil {
		t.Fatal(err)
	}
	for _, draft := range []runtime.Draft{{}, {Mode: runtime.DraftFixed, N: 3}} {
		r.Draft = draft
		r.Format = runtime.Format{After: cut, Within: 5}
		if draft.N > 0 {
			r.Format.Within = 1 // a round of drafts may exceed it
		}
		got, text, last, err := runtimetest.Collect(t.Context(), l, r)
		if err != nil || strings.Count(text, cut) != 1 || len(got) != 60 || last.Done != runtime.DoneLength || draft.N == 0 &&
			!strings.HasPrefix(text, begin+cut) {
			t.Errorf("%+v: %q, %d tokens, %s, %v; want %q at first", draft, text, len(got), last.Done, err, begin+cut)
		}
		r.Format.Kind, r.Format.Source = runtime.FormatRegex, `<(yes|no)>`
		if _, text, last, err = runtimetest.Collect(t.Context(), l, r); err != nil || last.Done != runtime.DoneStop ||
			!regexp.MustCompile(cut+`<(yes|no)>$`).MatchString(text) {
			t.Errorf("%+v: %q, %s, %v", draft, text, last.Done, err)
		}
	}
	r.Draft = runtime.Draft{}
	for open, want := range map[string]bool{strings.TrimSpace(begin): true, "never": false} {
		r.Format = runtime.Format{After: cut, Within: 1, Open: open}
		if _, text, _, err := runtimetest.Collect(t.Context(), l, r); err != nil || strings.Contains(text, cut) != want ||
			want &&
				!strings.HasPrefix(text, begin+cut) || !want && text != free {
			t.Errorf("a text that begins with %q: %q, %v", open, text, err)
		}
	}
	r.Format = runtime.Format{After: free[20:26], Within: 50}
	if _, text, _, err := runtimetest.Collect(t.Context(), l, r); err != nil || text != free {
		t.Errorf("a start that comes by itself: %q, %v, want %q", text, err, free)
	}
	r.MaxTokens, r.Format = 6, runtime.Format{After: cut, Within: 5}
	if got, text, last, err := runtimetest.Collect(t.Context(), l, r); err != nil || len(got) != 6 ||
		last.Done != runtime.DoneLength {
		t.Errorf("at the budget's end: %q, %s, %v", text, last.Done, err)
	}
}

// A request with a format survives a failed step.
func TestFormatRestarts(t *testing.T) {
	for _, name := range []string{"", "cached"} {
		o := runtime.Options{}
		if name != "" {
			o.PrefixCache = 1 << 24
		}
		l := cached(t, "demo", o)
		seed := int64(5)
		r := prompted(t, l, "Once upon a time", runtime.Request{MaxTokens: 40,
			Format:   regex(`(\{"name": "[a-z ]{5,9}"\}){3}`),
			Sampling: runtime.Sampling{Temperature: 1, Seed: &seed}})
		_, want, _, err := runtimetest.Collect(t.Context(), l, r)
		if err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(1, 1))
		l.batcher.onStep = func(plan []batchItem) error {
			if len(plan) > 1 && rnd.IntN(3) == 0 {
				return errors.New("a kernel failed")
			}
			return nil
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, text, _, err := runtimetest.Collect(t.Context(), l, r); err != nil || text != want {
					t.Errorf("%q, %v; want %q", text, err, want)
				}
			})
		}
		wg.Wait()
	}
}

func TestFormatRefused(t *testing.T) {
	l := cached(t, "demo", runtime.Options{})
	for _, test := range []struct {
		name string
		f    runtime.Format
		n    int
		is   error
	}{
		{"no such kind", runtime.Format{Kind: "yaml"}, 0, runtime.ErrFormat},
		{"a bad expression", regex(`(a`), 0, grammar.ErrInvalid},
		{"a schema with an unsupported keyword",
			runtime.Format{Kind: runtime.FormatSchema, Source: `{"not": {"uniqueItems": true}}`}, 0,
			grammar.ErrUnsupported},
		{"what no token sequence fits", regex(`[a-z]{50,}`), 4, grammar.ErrBudget},
	} {
		r := prompted(t, l, "Once", runtime.Request{MaxTokens: test.n, Format: test.f})
		if _, _, _, err := runtimetest.Collect(t.Context(), l, r); !errors.Is(err, test.is) ||
			!errors.Is(err, runtime.ErrFormat) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	bare := cached(t, "llama-default", runtime.Options{})
	bare.formats = constraint.New(nil, nil, 0)
	if _, _, _, err := runtimetest.Collect(t.Context(), bare, runtime.Request{Prompt: []int32{1},
		Format: regex("a")}); !errors.Is(err,
		runtime.ErrNoTokenizer) {
		t.Errorf("without a tokenizer: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, err := runtimetest.Collect(ctx, l, prompted(t, l, "Once",
		runtime.Request{Format: regex(`[a-z]{100}`)})); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
