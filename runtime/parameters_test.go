package runtime

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingotml/ingot/modelfile/parameters"
)

// Every parameter of Modelfiles and requests is set on a request, and each number must be finite. num_ctx and num_keep
// depend on the prompt.
func TestEveryParameterIsSet(t *testing.T) {
	for _, p := range parameters.All() {
		if !p.Request || p.Name == "num_ctx" || p.Name == "num_keep" {
			continue
		}
		values := []any{"3"}
		if p.Type == parameters.Strings {
			values = []any{[]string{"x"}}
		}
		if p.Type == parameters.Float {
			values = append(values, math.NaN(), math.Inf(1))
		}
		for i, v := range values {
			set, err := parameters.Of(map[string]any{p.Name: v})
			if err != nil {
				t.Fatal(err)
			}
			var r Request
			r.Apply(set)
			if cmp.Equal(r, Request{}) {
				t.Errorf("%s is not set: see Request.Apply in parameters.go", p.Name)
			}
			if err := r.Sampling.Check(); errors.Is(err, ErrSampling) != (i > 0) {
				t.Errorf("%s = %v: %v: see Sampling.Check in sampling.go", p.Name, v, err)
			}
		}
	}
}

func TestStandardDefaults(t *testing.T) {
	want := Defaults{Sampling: Sampling{Temperature: 0.8, TopK: 40, TopP: 0.9, RepeatPenalty: 1, RepeatLastN: 64}}
	if d := cmp.Diff(want, StandardDefaults()); d != "" {
		t.Error(d)
	}
}

func TestApply(t *testing.T) {
	r := Request{Sampling: Sampling{TopK: 5}, Stop: []string{"a"}}
	r.Apply(parameters.Set{
		Shared: parameters.Shared{Seed: new(int64(7)), Temperature: new(0.0)}, RepeatPenalty: new(1.5), NumPredict: new(9),
	})
	want := Request{
		Sampling:  Sampling{TopK: 5, RepeatPenalty: 1.5, Seed: new(int64(7))},
		MaxTokens: 9, Stop: []string{"a"},
	}
	if d := cmp.Diff(want, r); d != "" {
		t.Error(d)
	}
}

// An image's draft depth applies unless the program has chosen one.
func TestDefaultDraft(t *testing.T) {
	fixed := Draft{Mode: DraftFixed, N: 7}
	for _, test := range []struct {
		image         parameters.Set
		program, want Draft
	}{
		{parameters.Set{DraftNumPredict: new(3)}, Draft{}, Draft{Mode: DraftFixed, N: 3}},
		{parameters.Set{DraftNumPredict: new(99)}, Draft{}, Draft{Mode: DraftFixed, N: MaxDraft}},
		{parameters.Set{DraftNumPredict: new(0)}, Draft{}, Draft{Mode: DraftOff}},
		{parameters.Set{DraftNumPredict: new(3)}, fixed, fixed},
		{parameters.Set{NumKeep: new(3)}, Draft{}, Draft{}},
	} {
		d := Defaults{}.With(test.image)
		r := Request{Draft: test.program}
		if d.ApplyTo(&r); r.Draft != test.want {
			t.Errorf("%+v over %+v: %+v, want %+v", test.image, test.program, r.Draft, test.want)
		}
	}
}
