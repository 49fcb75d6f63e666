package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/runtime"
)

// The tokens of a request do not depend on the other requests in the step, or on whether its drafts are right, wrong or
// absent.
func TestSamplingDoesNotDependOnBatch(t *testing.T) {
	for _, vocab := range []int{7, 1000, 5000, 6144} { // above 4096, chooseNucleus is used
		all := []runtime.Sampling{
			{},
			{Temperature: 1},
			{Temperature: 0.7, TopK: 40, TopP: 0.9},
			{Temperature: 1.3, TopK: 40, TopP: 0.8, MinP: 0.01},
			{Temperature: 1, TopK: 5},
			{Temperature: 1, TopP: 0.9},
			{Temperature: 0.3, TopP: 0.9},
			{Temperature: 2, MinP: 0.02},
			{RepeatPenalty: 1.4, RepeatLastN: 8},
			{Temperature: 1, RepeatPenalty: 1.4, RepeatLastN: -1, Suppress: []int32{3}},
			{Temperature: 1, TopK: 40, LogitBias: map[int32]float64{1: 3, 5: -3}},
		}
		r := rand.New(rand.NewPCG(uint64(vocab), 1))
		const steps = 12
		logits := make([][]float32, len(all)*steps)
		for i := range logits {
			for range vocab {
				logits[i] = append(logits[i], float32(r.NormFloat64()))
			}
		}
		type script = func(samplers []*Sampler, row func(indices, step int) []float32, e *mlx.Thread) [][]int32
		run := func(f script) (out [][]int32) {
			mlxtest.Do(t, func(e *mlx.Thread) {
				samplers := make([]*Sampler, len(all))
				for i := range all {
					samplers[i] = &Sampler{sampling: all[i], seed: uint64(i), history: []int32{1, 2}}
				}
				out = f(samplers, func(indices, step int) []float32 { return logits[indices*steps+step] }, e)
			})
			return out
		}
		alone := run(func(samplers []*Sampler, row func(indices, step int) []float32, e *mlx.Thread) [][]int32 {
			out := make([][]int32, len(samplers))
			for i, s := range samplers {
				for step := range steps {
					next := decide(mlx.FromSlice(e, row(i, step), 1, vocab), Request{Sampler: s, TopLogProbs: -1})[0].Next
					s.history, out[i] = append(s.history, next), append(out[i], next)
				}
			}
			return out
		})
		together := run(func(samplers []*Sampler, row func(indices, step int) []float32, e *mlx.Thread) [][]int32 {
			out := make([][]int32, len(samplers))
			for step := range steps {
				var rows []float32
				var requests []Request
				for i, s := range samplers {
					rows, requests = append(rows, row(i, step)...), append(requests, Request{Sampler: s, TopLogProbs: -1})
				}
				for i, o := range decide(mlx.FromSlice(e, rows, len(samplers), vocab), requests...) {
					samplers[i].history, out[i] = append(samplers[i].history, o.Next), append(out[i], o.Next)
				}
			}
			return out
		})
		drafted := run(func(samplers []*Sampler, row func(indices, step int) []float32, e *mlx.Thread) [][]int32 {
			out := make([][]int32, len(samplers))
			for round := 0; ; round++ {
				var rows []float32
				var requests []Request
				var indices []int
				for i, s := range samplers {
					at := len(out[i])
					if at >= steps {
						continue
					}
					n := (round + i) % 4
					a := Request{Sampler: s, Drafts: slices.Clone(alone[i][at:min(at+n, steps-1)]), TopLogProbs: -1}
					if len(a.Drafts) > 2 {
						a.Drafts[1] = (a.Drafts[1] + 1) % int32(vocab) // a wrong one
					}
					for j := range a.Rows() {
						rows = append(rows, row(i, at+j)...)
					}
					requests, indices = append(requests, a), append(indices, i)
				}
				if len(requests) == 0 {
					return out
				}
				for k, o := range decide(mlx.FromSlice(e, rows, len(rows)/vocab, vocab), requests...) {
					i := indices[k]
					chosen := append(slices.Clone(requests[k].Drafts[:o.Accepted]), o.Next)
					samplers[i].history, out[i] = append(samplers[i].history, chosen...), append(out[i], chosen...)
				}
			}
		})
		for i := range all {
			if !slices.Equal(alone[i], together[i]) {
				t.Errorf("vocabulary %d, %+v: alone %v, in a batch %v", vocab, all[i], alone[i], together[i])
			}
			if !slices.Equal(alone[i], drafted[i]) {
				t.Errorf("vocabulary %d, %+v: alone %v, with drafts %v", vocab, all[i], alone[i], drafted[i])
			}
		}
	}
}

// A draw from a large vocabulary selects a block first.
func TestDrawFromManyCandidates(t *testing.T) {
	const vocab, n = 5001, 6000
	logits := make([]float32, vocab)
	for i := range logits {
		logits[i] = -100 // practically never drawn
	}
	p := map[int]float64{0: 0.1, 255: 0.2, 256: 0.05, 300: 0.3, 4999: 0.15, 5000: 0.2}
	for i, v := range p {
		logits[i] = float32(math.Log(v))
	}
	count := map[string]int{}
	want := map[string]float64{}
	for _, id := range draws(t, runtime.Sampling{Temperature: 1}, 5, logits, nil, n) {
		count[fmt.Sprint(id)]++
	}
	for id, v := range p {
		want[fmt.Sprint(id)] = v
	}
	checkCounts(t, count, want, n)

	// In one batch: a nucleus among the most likely tokens, and one that is larger.
	wide := make([]float32, vocab)
	for i := range wide {
		wide[i] = -float32(i%3) / 2
	}
	mlxtest.Do(t, func(e *mlx.Thread) {
		x := mlx.FromSlice(e, slices.Concat(logits, wide, logits), 3, vocab)
		seen := map[int32]bool{}
		nucleus := runtime.Sampling{Temperature: 1, TopP: 0.6}
		for i := range 40 {
			requests := make([]Request, 3)
			for j := range requests {
				requests[j] = Request{Sampler: &Sampler{sampling: nucleus, seed: uint64(i)}, TopLogProbs: -1}
			}
			out := decide(x, requests...)
			for _, o := range []Outcome{out[0], out[2]} {
				if seen[o.Next] = true; o.Next != out[0].Next || o.Next != 300 && o.Next != 255 && o.Next != 5000 {
					t.Errorf("token %d is not in the nucleus, or differs from the equal row's", o.Next)
				}
			}
			if id := out[1].Next; id%3 > 1 {
				t.Errorf("token %d is not in the wide nucleus", id)
			}
		}
		if len(seen) != 3 {
			t.Errorf("of three tokens, only %v were drawn", seen)
		}
	})
}

// A mask allows some tokens; drafts are verified with the masks of their own rows.
func TestMasks(t *testing.T) {
	const vocab = 70
	bits := func(ids ...int) []uint32 {
		m := make([]uint32, 3)
		for _, id := range ids {
			m[id/32] |= 1 << (id % 32)
		}
		return m
	}
	logits := make([]float32, 0, 3*vocab)
	for range 3 {
		for i := range vocab {
			logits = append(logits, float32(i)/10)
		}
	}
	masks := [][]uint32{bits(1, 40), bits(69, 3, 64), bits(33, 2)}
	mlxtest.Do(t, func(e *mlx.Thread) {
		x := mlx.FromSlice(e, logits, 3, vocab)
		for _, s := range []runtime.Sampling{{}, {Temperature: 1e-9}, {Temperature: 0.05, TopK: 5, TopP: 0.5},
			{Temperature: 0.01, TopP: 0.9, RepeatPenalty: 1.01, RepeatLastN: 4}} {
			for _, test := range []struct {
				drafts []int32
				want   Outcome
			}{
				{[]int32{40, 69}, Outcome{Accepted: 2, Next: 33}},
				{[]int32{40, 68}, Outcome{Accepted: 1, Next: 69}},
				{[]int32{69, 69}, Outcome{Accepted: 0, Next: 40}},
			} {
				r := Sampler{sampling: s, seed: 3}
				o := decide(x, Request{Sampler: &r, Drafts: test.drafts, Masks: masks, TopLogProbs: -1})[0]
				if o.Accepted != test.want.Accepted || o.Next != test.want.Next {
					t.Errorf("%+v, drafts %v: %d accepted, then %d; want %+v", s, test.drafts, o.Accepted, o.Next, test.want)
				}
			}
		}
	})
}

// Log-probabilities follow from the raw logits, whatever bias, penalties, masks and temperature are, also for accepted
// drafts.
func TestLogProbs(t *testing.T) {
	const vocab = 9
	r := rand.New(rand.NewPCG(5, 6))
	logits := make([]float32, 4*vocab)
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * 2)
	}
	row := func(i int) []float64 {
		var sum float64
		out := make([]float64, vocab)
		for j := range out {
			sum += math.Exp(float64(logits[i*vocab+j]))
		}
		for j := range out {
			out[j] = float64(logits[i*vocab+j]) - math.Log(sum)
		}
		return out
	}
	best := func(i int) int32 { p := row(i); return int32(slices.Index(p, slices.Max(p))) }
	mlxtest.Do(t, func(e *mlx.Thread) {
		x := mlx.FromSlice(e, logits, 4, vocab)
		biased := runtime.Sampling{LogitBias: map[int32]float64{4: 50}, Temperature: 0.5}
		out := decide(x,
			Request{Sampler: &Sampler{}, Drafts: []int32{best(0)}, TopLogProbs: 3},
			Request{Sampler: &Sampler{}, TopLogProbs: -1},
			Request{Sampler: &Sampler{sampling: biased}, TopLogProbs: 0})
		check := func(name string, p runtime.LogProb, row []float64, id int32, top int) {
			t.Helper()
			if p.ID != id || math.Abs(float64(p.LogProb)-row[id]) > 1e-5 || len(p.Top) != top {
				t.Errorf("%s: %+v, want token %d with %g and %d others", name, p, id, row[id], top)
			}
			for i, o := range p.Top {
				if math.Abs(float64(o.LogProb)-row[o.ID]) > 1e-5 || i > 0 && o.LogProb > p.Top[i-1].LogProb || i == 0 &&
					o.LogProb < float32(slices.Max(row))-1e-5 {
					t.Errorf("%s: position %d has %+v, want %g", name, i, o, row[o.ID])
				}
			}
		}
		if o := out[0]; o.Accepted != 1 || len(o.logProbs) != 2 {
			t.Errorf("a greedy draft: %+v", o)
			return
		}
		check("an accepted draft", out[0].logProbs[0], row(0), best(0), 3)
		check("the token after it", out[0].logProbs[1], row(1), best(1), 3)
		if out[1].logProbs != nil {
			t.Errorf("unrequested log-probabilities: %+v", out[1].logProbs)
		}
		check("a biased token", out[2].logProbs[0], row(3), 4, 0)
	})
}

// Many wide rows are processed in chunks, and their tokens are in order.
func TestManyWideRows(t *testing.T) {
	const vocab, rows = 1 << 18, 70
	mlxtest.Do(t, func(e *mlx.Thread) {
		peaks, requests := make([]int32, rows), make([]Request, rows)
		for i := range peaks {
			peaks[i] = int32((i*7919 + 5) % vocab)
			requests[i] = Request{Sampler: &Sampler{sampling: runtime.Sampling{Temperature: float64(i%2) * 0.1}},
				TopLogProbs: -1}
			if i%3 == 0 {
				requests[i].Sampler.sampling.LogitBias = map[int32]float64{peaks[i] + 1: 100}
			}
		}
		logits := mlx.PutAlongAxis(mlx.Zeros(e, mlx.BFloat16, rows, vocab), mlx.FromSlice(e, peaks, rows, 1),
			mlx.Full(e, 50, mlx.BFloat16, rows, 1), -1)
		for i, o := range decide(logits, requests...) {
			want := peaks[i]
			if i%3 == 0 {
				want++
			}
			if o.Next != want {
				t.Errorf("row %d: token %d, want %d", i, o.Next, want)
			}
		}
	})
}
