package sample

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/runtime"
)

// draws samples n tokens from the same logits, many in one step.
func draws(t *testing.T, s runtime.Sampling, seed uint64, logits []float32, history []int32, n int) []int {
	t.Helper()
	var out []int
	mlxtest.Do(t, func(e *mlx.Thread) {
		for len(out) < n {
			var requests []Request
			for i := len(out); i < min(n, len(out)+500); i++ {
				requests = append(requests, Request{Sampler: &Sampler{sampling: s, seed: seed, history: history,
					position: uint64(i)}, TopLogProbs: -1})
			}
			e.Scope(func() {
				x := mlx.BroadcastTo(mlx.FromSlice(e, logits, 1, len(logits)), len(requests), len(logits))
				for _, o := range decide(x, requests...) {
					out = append(out, int(o.Next))
				}
			})
		}
	})
	return out
}

// decide samples and reads the outcomes.
func decide(logits *mlx.Array, requests ...Request) []Outcome {
	v := Start(logits, requests)
	out := make([]Outcome, len(requests))
	for i := range requests {
		out[i] = v.Part(i).Read()
	}
	return out
}

func TestGreedyAndPenalties(t *testing.T) {
	logits := []float32{1, 4, 3.5, -2, 0}
	for _, test := range []struct {
		name    string
		s       runtime.Sampling
		history []int32
		want    int
	}{
		{"highest score", runtime.Sampling{}, nil, 1},
		{"negative temperature", runtime.Sampling{Temperature: -1}, nil, 1},
		{"repeat divides a positive score", runtime.Sampling{RepeatPenalty: 1.2, RepeatLastN: 64}, []int32{1}, 2},
		{"once per distinct token", runtime.Sampling{RepeatPenalty: 1.1, RepeatLastN: 64}, []int32{1, 1, 1, 1}, 1},
		{"presence, once", runtime.Sampling{PresencePenalty: 0.4, RepeatLastN: 64}, []int32{1, 1, 1}, 1},
		{"presence", runtime.Sampling{PresencePenalty: 0.6, RepeatLastN: 64}, []int32{1}, 2},
		{"frequency, per occurrence", runtime.Sampling{FrequencyPenalty: 0.2, RepeatLastN: 64}, []int32{1, 1, 1}, 2},
		{"out of the window", runtime.Sampling{PresencePenalty: 5, RepeatLastN: 2}, []int32{1, 0, 0}, 1},
		{"window 0 turns penalties off", runtime.Sampling{PresencePenalty: 5, RepeatPenalty: 3, RepeatLastN: 0}, []int32{1},
			1},
		{"negative window is all",
			runtime.Sampling{PresencePenalty: 5, RepeatLastN: -1}, append([]int32{1}, make([]int32, 100)...), 2},
		{"suppressed", runtime.Sampling{Suppress: []int32{1}}, nil, 2},
		{"suppressed, and one outside the vocabulary", runtime.Sampling{Suppress: []int32{-1, 1, 2, 5, 1 << 30}}, nil, 0},
		{"suppressed and penalized", runtime.Sampling{Suppress: []int32{1}, RepeatPenalty: 2, RepeatLastN: 64},
			[]int32{1, 2}, 2},
		{"bias", runtime.Sampling{LogitBias: map[int32]float64{3: 7, 99: 50, -1: 50}}, nil, 3},
		{"bias forbids", runtime.Sampling{LogitBias: map[int32]float64{1: -100}}, nil, 2},
		{"bias before penalties",
			runtime.Sampling{LogitBias: map[int32]float64{3: 7}, RepeatPenalty: 1.5, RepeatLastN: 64}, []int32{3}, 1},
		{"repeat penalty 0 is off", runtime.Sampling{RepeatPenalty: 0, RepeatLastN: 64}, []int32{1}, 1},
	} {
		if got := draws(t, test.s, 1, logits, test.history, 1)[0]; got != test.want {
			t.Errorf("%s: token %d, want %d", test.name, got, test.want)
		}
	}
	// A negative logit is multiplied.
	if got := draws(t, runtime.Sampling{RepeatPenalty: 2, RepeatLastN: 1}, 1, []float32{-3, -2}, []int32{1},
		1)[0]; got != 0 {
		t.Errorf("repeat multiplies a negative logit: token %d, want 0", got)
	}
}

// The remaining candidates and their probabilities follow the definition of each parameter.
func TestDistribution(t *testing.T) {
	p := []float64{0.05, 0.4, 0.1, 0.25, 0.2}
	logits := make([]float32, len(p))
	for i := range p {
		logits[i] = float32(math.Log(p[i]) + 3)
	}
	for _, test := range []struct {
		name string
		s    runtime.Sampling
		want []float64 // unnormalized
	}{
		{"plain", runtime.Sampling{Temperature: 1}, p},
		{"temperature 0.5 squares", runtime.Sampling{Temperature: 0.5}, []float64{0.0025, 0.16, 0.01, 0.0625, 0.04}},
		{"top_k 2", runtime.Sampling{Temperature: 1, TopK: 2}, []float64{0, 0.4, 0, 0.25, 0}},
		{"top_k of the whole vocabulary", runtime.Sampling{Temperature: 1, TopK: 5}, p},
		{"top_k 1", runtime.Sampling{Temperature: 1, TopK: 1}, []float64{0, 1, 0, 0, 0}},
		{"top_p 0.5: the sum before a token counts", runtime.Sampling{Temperature: 1, TopP: 0.5},
			[]float64{0, 0.4, 0, 0.25, 0}},
		{"top_p 0.66", runtime.Sampling{Temperature: 1, TopP: 0.66}, []float64{0, 0.4, 0, 0.25, 0.2}},
		{"top_p tiny keeps one", runtime.Sampling{Temperature: 1, TopP: 1e-9}, []float64{0, 1, 0, 0, 0}},
		{"top_p 1 is off", runtime.Sampling{Temperature: 1, TopP: 1}, p},
		{"min_p 0.45 of the largest", runtime.Sampling{Temperature: 1, MinP: 0.45}, []float64{0, 0.4, 0, 0.25, 0.2}},
		{"min_p over 1 is off", runtime.Sampling{Temperature: 1, MinP: 1.5}, p},
		{"top_k 3, then top_p over what is left", runtime.Sampling{Temperature: 1, TopK: 3, TopP: 0.47},
			[]float64{0, 0.4, 0, 0, 0}},
		{"typical_p 0.2: the nearest to the entropy", runtime.Sampling{Temperature: 1, TypicalP: 0.2},
			[]float64{0, 0, 0, 0.25, 0}},
		{"typical_p 0.3: the sum before a token counts", runtime.Sampling{Temperature: 1, TypicalP: 0.3},
			[]float64{0, 0, 0, 0.25, 0.2}},
		{"typical_p 0.46", runtime.Sampling{Temperature: 1, TypicalP: 0.46}, []float64{0, 0.4, 0, 0.25, 0.2}},
		{"typical_p 1 is off", runtime.Sampling{Temperature: 1, TypicalP: 1}, p},
		{"top_k 3, then typical_p over what is left", runtime.Sampling{Temperature: 1, TopK: 3, TypicalP: 0.3},
			[]float64{0, 0.4, 0, 0.25, 0}},
		{"typical_p, then top_p over what is left", runtime.Sampling{Temperature: 1, TypicalP: 0.46, TopP: 0.45},
			[]float64{0, 0.4, 0, 0, 0}},
		{"typical_p of suppressed tokens", runtime.Sampling{Temperature: 1, TypicalP: 0.5, Suppress: []int32{3}},
			[]float64{0, 0.4, 0, 0, 0.2}},
		{"suppressed",
			runtime.Sampling{Temperature: 1, TopK: 4, TopP: 0.99, Suppress: []int32{1, 3}}, []float64{0.05, 0, 0.1, 0, 0.2}},
		{"all", runtime.Sampling{Temperature: 1, TopK: 4, TopP: 0.9, MinP: 0.55}, []float64{0, 0.4, 0, 0.25, 0}},
	} {
		const n = 3000
		count := make([]float64, len(p))
		for _, id := range draws(t, test.s, 42, logits, nil, n) {
			count[id]++
		}
		var sum float64
		for _, w := range test.want {
			sum += w
		}
		for i, w := range test.want {
			share := w / sum
			// Five standard deviations; the seed is fixed, so the test passes always or never.
			if limit := 5*math.Sqrt(n*share*(1-share)) + 1e-9; math.Abs(count[i]-n*share) > limit {
				t.Errorf("%s: token %d was drawn %v times of %d, want about %.0f", test.name, i, count[i], n, n*share)
			}
		}
	}
}

// Each parameter changes what is drawn. The sampler's constructor turns a seed into a number, see TestSeed.
func TestEveryParameterHasAnEffect(t *testing.T) {
	changes := map[string]func(s *runtime.Sampling){
		"Temperature":      func(s *runtime.Sampling) { s.Temperature = 0.1 },
		"TopK":             func(s *runtime.Sampling) { s.TopK = 2 },
		"TypicalP":         func(s *runtime.Sampling) { s.TypicalP = 0.3 },
		"TopP":             func(s *runtime.Sampling) { s.TopP = 0.5 },
		"MinP":             func(s *runtime.Sampling) { s.MinP = 0.5 },
		"RepeatPenalty":    func(s *runtime.Sampling) { s.RepeatPenalty = 5 },
		"PresencePenalty":  func(s *runtime.Sampling) { s.PresencePenalty = 5 },
		"FrequencyPenalty": func(s *runtime.Sampling) { s.FrequencyPenalty = 2 },
		"RepeatLastN":      func(s *runtime.Sampling) { s.RepeatLastN = 1 },
		"LogitBias":        func(s *runtime.Sampling) { s.LogitBias = map[int32]float64{0: 5} },
		"Suppress":         func(s *runtime.Sampling) { s.Suppress = []int32{2} },
		"Seed":             nil,
	}
	drawn := func(s runtime.Sampling) []int {
		return draws(t, s, 1, []float32{1, 2, 3, 2.5, 0}, []int32{2, 2, 1}, 200)
	}
	base := runtime.Sampling{Temperature: 1, PresencePenalty: 1, RepeatLastN: -1}
	before := drawn(base)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[runtime.Sampling]()) {
		change, ok := changes[f.Name]
		if !ok {
			t.Errorf("Sampling.%s has no case here", f.Name)
		}
		if change == nil {
			continue
		}
		s := base
		if change(&s); slices.Equal(drawn(s), before) {
			t.Errorf("Sampling.%s has no effect", f.Name)
		}
	}
}

func TestSeed(t *testing.T) {
	logits := make([]float32, 100)
	s := runtime.Sampling{Temperature: 1, TopP: 0.95}
	a, b, c := draws(t, s, 7, logits, nil, 20), draws(t, s, 7, logits, nil, 20), draws(t, s, 8, logits, nil, 20)
	if !slices.Equal(a, b) {
		t.Errorf("one seed gave %v and %v", a, b)
	}
	if slices.Equal(a, c) {
		t.Errorf("two seeds gave the same: %v", a)
	}
	if one := a[0]; !slices.ContainsFunc(a, func(id int) bool { return id != one }) {
		t.Errorf("all draws are %d", one)
	}
}
