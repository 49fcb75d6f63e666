package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/grammar"
)

func regex(source string) Format { return Format{Kind: FormatRegex, Source: source} }

// prompted returns a request to the demo model.
func prompted(t *testing.T, l *Local, text string, r Request) Request {
	t.Helper()
	var err error
	if r.Prompt, err = l.Encode(text); err != nil {
		t.Fatal(err)
	}
	return r
}

// Generated text satisfies its format: greedy or sampled, alone or in a batch, and with any prefix cache.
func TestFormat(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		l := cached(t, "demo", Options{PrefixCache: 1 << 24})
		l.batcher.sendsAhead = ahead
		formats := []Format{
			regex(`(yes|no), [0-9]{2,4} (cats|dogs)\.`),
			regex(`[a-z]+( [a-z]+){3}`),
			regex(`"[^"\\]*"`),
			{Kind: FormatJSON},
			{Kind: FormatSchema, Source: `{"type": "object", ` +
				`"properties": {"name": {"type": "string"}, "legs": {"type": "integer", "minimum": 0}}, ` +
				`"required": ["name", "legs"], "additionalProperties": false}`},
			{Kind: FormatEBNF, Source: `root ::= "(" root ")" | [a-z]*`},
		}
		holds := func(f Format, text string) bool {
			switch f.Kind {
			case FormatRegex:
				return regexp.MustCompile(`^(?s:` + f.Source + `)$`).MatchString(text)
			case FormatJSON:
				var v map[string]any
				return json.Unmarshal([]byte(text), &v) == nil
			case FormatSchema:
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
			r := prompted(t, l, "Once upon a time, "+strings.Repeat("there ", i%7), Request{MaxTokens: 20 + i, Format: f})
			if i%3 > 0 {
				r.Sampling = Sampling{Temperature: float64(i%3) * 0.8, TopK: 40 * (i % 2), Seed: &seed, RepeatPenalty: 1.1,
					RepeatLastN: 64}
			}
			wg.Go(func() {
				ids, text, last, err := collect(t.Context(), l, r)
				if err != nil || !holds(f, text) {
					t.Errorf("%+v: %q (%d tokens, %s), %v", f, text, len(ids), last.Done, err)
				}
				if len(ids) != last.Stats.Tokens || len(ids) > r.MaxTokens {
					t.Errorf("%+v: %d tokens of %d, counted %d", f, len(ids), r.MaxTokens, last.Stats.Tokens)
				}
				_, again, _, err := collect(t.Context(), l, r)
				if err != nil || r.Sampling.Seed != nil && again != text {
					t.Errorf("%+v: %q, then %q, %v", f, text, again, err)
				}
			})
		}
		wg.Wait()
	}
}

// Generation ends when the format allows no further token, or when the remaining budget does.
func TestFormatEnds(t *testing.T) {
	l := cached(t, "demo", Options{})
	for _, test := range []struct {
		name, source string
		tokens       int
		ignoreEOS    bool
		want         string // "" matches any text
		done         DoneReason
	}{
		{"nothing to add", `(a|b)c`, 10, false, "", DoneStop},
		{"nothing to add, at the budget's end", `[ab]`, 1, false, "", DoneStop},
		{"nothing to choose", `the end`, 10, false, "the end", DoneStop},
		{"an end without an end token", `abc?`, 20, true, "", DoneStop},
		{"more could come", `[0-9]+`, 3, true, "", DoneLength},
		{"the budget closes it", `\([a-z ]*\)`, 6, true, "", DoneStop},
	} {
		r := prompted(t, l, "Once upon a time", Request{MaxTokens: test.tokens, IgnoreEOS: test.ignoreEOS,
			Format: regex(test.source)})
		ids, text, last, err := collect(t.Context(), l, r)
		if err != nil || last.Done != test.done || test.want != "" && text != test.want ||
			!regexp.MustCompile(`^(`+test.source+`)$`).MatchString(text) {
			t.Errorf("%s: %q (%d tokens), %s, %v", test.name, text, len(ids), last.Done, err)
		}
	}
}

// Forced tokens are emitted without the model, except for one.
func TestForcedTokens(t *testing.T) {
	l := cached(t, "demo", Options{})
	steps := 0
	l.batcher.onStep = func(plan []batchItem) error { steps++; return nil }
	r := prompted(t, l, "Once upon a time", Request{MaxTokens: 200,
		Format: regex(`\{"name of the animal": "(cat|dog)", "name of its best friend": "(cow|pig)"\}`)})
	ids, text, last, err := collect(t.Context(), l, r)
	if err != nil || last.Done != DoneStop || last.Stats.Tokens != len(ids) || last.Stats.PromptTokens != len(r.Prompt) {
		t.Fatalf("%q, %+v, %v", text, last, err)
	}
	if steps >= len(ids)/2 {
		t.Errorf("%d tokens took %d steps", len(ids), steps)
	}
	whole, err := l.Tokenizer().Decode(ids, true)
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

// A format that starts after a text does not constrain the text before it.
func TestFormatAfter(t *testing.T) {
	l := cached(t, "demo", Options{})
	r := prompted(t, l, "Once upon a time", Request{MaxTokens: 60, IgnoreEOS: true})
	_, free, _, err := collect(t.Context(), l, r)
	if err != nil {
		t.Fatal(err)
	}
	r.Format = regex(`<(yes|no)>[0-9]{3}`)
	r.Format.After = free[20:26]
	_, text, last, err := collect(t.Context(), l, r)
	if err != nil || last.Done != DoneStop || !strings.HasPrefix(text, free[:26]) ||
		!regexp.MustCompile(`<(yes|no)>[0-9]{3}$`).MatchString(text) {
		t.Errorf("after %q: %q, %s, %v", r.Format.After, text, last.Done, err)
	}
	for _, drafts := range [][]int32{nil, {5, 6, 7}} {
		g, err := l.begin(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if kept := g.allowedDrafts(drafts); len(kept) != len(drafts) {
			t.Errorf("before the format, %v of the drafts %v are kept", kept, drafts)
		}
		ids, _ := l.tok.Encode(free[:40], false)
		if kept := g.allowedDrafts(ids); len(kept) >= len(ids) || len(kept) < 3 {
			t.Errorf("%d of %d drafts are kept, which extend into the format", len(kept), len(ids))
		}
		g.seq.Free()
	}
	r.Format.After = "this never comes"
	if _, text, last, err := collect(t.Context(), l, r); err != nil || text != free || last.Done != DoneLength {
		t.Errorf("a start that never comes: %q, %s, %v; want %q", text, last.Done, err, free)
	}
	r.Format.After, r.Format.Source = free[len(free)-3:], `[0-9]{20}`
	if _, _, last, err := collect(t.Context(), l, r); err != nil || last.Done != DoneLength {
		t.Errorf("a start that comes too late: %s, %v", last.Done, err)
	}

	// An optional format may exceed the budget; it is then cut off.
	r.Format = regex(`[0-9]{80}`)
	r.Format.After = free[20:26]
	if _, _, _, err := collect(t.Context(), l, r); !errors.Is(err, ErrFormat) {
		t.Errorf("a format of 80 digits in 60 tokens: %v", err)
	}
	r.Format.Optional = true
	if _, text, last, err := collect(t.Context(), l, r); err != nil || last.Done != DoneLength ||
		!regexp.MustCompile(`^`+regexp.QuoteMeta(free[:26])+`.{0,9}[0-9]{20,79}$`).MatchString(text) {
		t.Errorf("an optional format of 80 digits: %q, %s, %v", text, last.Done, err)
	}
	r.Format.After = "this never comes"
	if _, text, _, err := collect(t.Context(), l, r); err != nil || text != free {
		t.Errorf("an optional format that is not begun: %q, %v; want %q", text, err, free)
	}
}

// The text before a format may be bounded, even without a format.
func TestWithin(t *testing.T) {
	l := cached(t, "demo", Options{})
	r := prompted(t, l, "Once upon a time", Request{MaxTokens: 60, IgnoreEOS: true})
	ids, free, _, err := collect(t.Context(), l, r)
	if err != nil {
		t.Fatal(err)
	}
	const cut = ". The end!"
	begin, err := l.Tokenizer().Decode(ids[:5], true)
	if err != nil {
		t.Fatal(err)
	}
	for _, draft := range []Draft{{}, {Mode: DraftFixed, N: 3}} {
		r.Draft = draft
		r.Format = Format{After: cut, Within: 5}
		if draft.N > 0 {
			r.Format.Within = 1 // a round of drafts may exceed it
		}
		got, text, last, err := collect(t.Context(), l, r)
		if err != nil || strings.Count(text, cut) != 1 || len(got) != 60 || last.Done != DoneLength || draft.N == 0 &&
			!strings.HasPrefix(text, begin+cut) {
			t.Errorf("%+v: %q, %d tokens, %s, %v; want %q at first", draft, text, len(got), last.Done, err, begin+cut)
		}
		r.Format.Kind, r.Format.Source = FormatRegex, `<(yes|no)>`
		if _, text, last, err = collect(t.Context(), l, r); err != nil || last.Done != DoneStop ||
			!regexp.MustCompile(cut+`<(yes|no)>$`).MatchString(text) {
			t.Errorf("%+v: %q, %s, %v", draft, text, last.Done, err)
		}
	}
	r.Draft = Draft{}
	for open, want := range map[string]bool{strings.TrimSpace(begin): true, "never": false} {
		r.Format = Format{After: cut, Within: 1, Open: open}
		if _, text, _, err := collect(t.Context(), l, r); err != nil || strings.Contains(text, cut) != want || want &&
			!strings.HasPrefix(text, begin+cut) || !want && text != free {
			t.Errorf("a text that begins with %q: %q, %v", open, text, err)
		}
	}
	r.Format = Format{After: free[20:26], Within: 50}
	if _, text, _, err := collect(t.Context(), l, r); err != nil || text != free {
		t.Errorf("a start that comes by itself: %q, %v, want %q", text, err, free)
	}
	r.MaxTokens, r.Format = 6, Format{After: cut, Within: 5}
	if got, text, last, err := collect(t.Context(), l, r); err != nil || len(got) != 6 || last.Done != DoneLength {
		t.Errorf("at the budget's end: %q, %s, %v", text, last.Done, err)
	}
}

func TestParseFormat(t *testing.T) {
	for source, want := range map[string]Format{
		``: {}, `null`: {}, `""`: {}, ` "json" `: {Kind: FormatJSON},
		` {"type": "object"}`: {Kind: FormatSchema, Source: `{"type": "object"}`},
		`"regex:a:\"b+"`:      regex(`a:"b+`), `"ebnf:root ::= [a-z]"`: {Kind: FormatEBNF, Source: `root ::= [a-z]`},
	} {
		got, err := ParseFormat([]byte(source))
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", source, got, err)
		}
		if again, err := ParseFormat(got.Value()); err != nil || again != want {
			t.Errorf("%s becomes %s, which is %+v, %v", source, got.Value(), again, err)
		}
	}
	for _, source := range []string{`"yaml"`, `7`, `[]`, `"json`, `"json:"`, `"regex"`, `"schema:{}"`} {
		if got, err := ParseFormat([]byte(source)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %+v, %v", source, got, err)
		}
	}
}

// Drafts do not change a constrained text: drafts that violate the format are cut, and forced tokens are inserted.
func TestFormatWithDrafts(t *testing.T) {
	l := loadPair(t, "demo", "demo", convert.Precision{}, Options{PrefixCache: 1 << 24})
	seed := int64(8)
	for _, f := range []Format{
		regex(`(\{"name": "[a-z ]{5,30}", "friends": (true|false)\} ){2}`),
		{Kind: FormatSchema, Source: `{"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 4}`},
		{Kind: FormatRegex, Source: `<[a-z ]{0,40}>`, After: "a"},
	} {
		for _, s := range []Sampling{{}, {Temperature: 1, TopK: 50, Seed: &seed},
			{Temperature: 0.7, RepeatPenalty: 1.2, RepeatLastN: 64, Seed: &seed}} {
			for _, n := range []int{12, 70} {
				r := prompted(t, l, "Once upon a time", Request{MaxTokens: n, Format: f, Sampling: s, Draft: Draft{Mode: DraftOff}})
				want, text, _, err := collect(t.Context(), l, r)
				if errors.Is(err, grammar.ErrBudget) {
					continue
				}
				r.Draft = fixed(4)
				ids, _, last, err2 := collect(t.Context(), l, r)
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

// A request with a format survives a failed step.
func TestFormatRestarts(t *testing.T) {
	for _, name := range []string{"", "cached"} {
		o := Options{}
		if name != "" {
			o.PrefixCache = 1 << 24
		}
		l := cached(t, "demo", o)
		seed := int64(5)
		r := prompted(t, l, "Once upon a time", Request{MaxTokens: 40, Format: regex(`(\{"name": "[a-z ]{5,9}"\}){3}`),
			Sampling: Sampling{Temperature: 1, Seed: &seed}})
		_, want, _, err := collect(t.Context(), l, r)
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
				if _, text, _, err := collect(t.Context(), l, r); err != nil || text != want {
					t.Errorf("%q, %v; want %q", text, err, want)
				}
			})
		}
		wg.Wait()
	}
}

func TestFormatRefused(t *testing.T) {
	l := cached(t, "demo", Options{})
	for _, test := range []struct {
		name string
		f    Format
		n    int
		is   error
	}{
		{"no such kind", Format{Kind: "yaml"}, 0, ErrFormat},
		{"a bad expression", regex(`(a`), 0, grammar.ErrInvalid},
		{"a schema with an unsupported keyword",
			Format{Kind: FormatSchema, Source: `{"type": "array", "uniqueItems": true}`}, 0, grammar.ErrUnsupported},
		{"what no token sequence fits", regex(`[a-z]{50,}`), 4, grammar.ErrBudget},
	} {
		r := prompted(t, l, "Once", Request{MaxTokens: test.n, Format: test.f})
		if _, _, _, err := collect(t.Context(), l, r); !errors.Is(err, test.is) || !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	bare := cached(t, "llama-default", Options{})
	bare.tok = nil
	if _, _, _, err := collect(t.Context(), bare, Request{Prompt: []int32{1}, Format: regex("a")}); !errors.Is(err,
		ErrNoTokenizer) {
		t.Errorf("without a tokenizer: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, err := collect(ctx, l, prompted(t, l, "Once", Request{Format: regex(`[a-z]{100}`)})); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Drafts are cut at the first one that violates the format, and each row has its own mask.
func TestAllowedDrafts(t *testing.T) {
	l := cached(t, "demo", Options{})
	g, err := l.begin(t.Context(), prompted(t, l, "Once", Request{MaxTokens: 30, Format: regex(`[a-c]{3}(x|yz)?`)}))
	if err != nil {
		t.Fatal(err)
	}
	id := func(text string) int32 {
		ids, err := l.tok.Encode(text, false)
		for i := 1; err == nil && i < len(ids); i++ { // a letter may follow a word-start mark
			if b, ok := l.tok.Bytes(ids[i]); ok && string(b) == text {
				return ids[i]
			}
		}
		for i := range l.tok.Size() {
			if b, ok := l.tok.Bytes(int32(i)); ok && string(b) == text {
				return int32(i)
			}
		}
		t.Fatalf("no token for %q: %v", text, err)
		return 0
	}
	a, x, y, eos := id("a"), id("x"), id("y"), l.eos[0]
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
		kept := g.allowedDrafts(test.drafts)
		if !slices.Equal(kept, test.drafts[:test.keep]) {
			t.Errorf("%v of the drafts %v are kept, want %d", kept, test.drafts, test.keep)
		}
		if q := g.sampleRequest(kept, nil); len(q.masks) != q.rows() {
			t.Errorf("%d masks of %d rows", len(q.masks), q.rows())
		}
	}
	g.seq.Free()
}
