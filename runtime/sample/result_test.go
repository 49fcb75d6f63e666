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

// distribution computes the distribution by the definition of Sampling, in plain arithmetic.
func distribution(logits []float64, s runtime.Sampling, history []int32) []float64 {
	logits = slices.Clone(logits)
	for id, b := range s.LogitBias {
		logits[id] += b
	}
	if s.RepeatLastN > 0 && len(history) > s.RepeatLastN {
		history = history[len(history)-s.RepeatLastN:]
	}
	if s.RepeatLastN != 0 {
		count := map[int32]float64{}
		for _, id := range history {
			count[id]++
		}
		for id, n := range count {
			if s.RepeatPenalty > 0 {
				if logits[id] < 0 {
					logits[id] *= s.RepeatPenalty
				} else {
					logits[id] /= s.RepeatPenalty
				}
			}
			logits[id] -= s.PresencePenalty + s.FrequencyPenalty*n
		}
	}
	order := make([]int, len(logits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(math.Copysign(1, logits[b]-logits[a])) })
	p := make([]float64, len(logits))
	if s.Temperature <= 0 {
		p[order[0]] = 1
		return p
	}
	if s.TopK > 0 {
		order = order[:min(s.TopK, len(order))]
	}
	var sum float64
	for _, id := range order {
		p[id] = math.Exp(logits[id] / s.Temperature)
		sum += p[id]
	}
	var before, unfinished float64
	for i, id := range order {
		share := p[id] / sum
		if s.TopP > 0 && before >= s.TopP || p[id] < s.MinP*p[order[0]] {
			p[id] = 0
		}
		before += share
		unfinished += p[order[i]]
	}
	for i := range p {
		p[i] /= unfinished
	}
	return p
}

// chain is a model whose logits depend only on the last token.
type chain [][]float64

func newChain(r *rand.Rand, vocab int, spread float64) chain {
	c := make(chain, vocab)
	for i := range c {
		for range vocab {
			c[i] = append(c[i], r.NormFloat64()*spread)
		}
	}
	return c
}

// lastToken returns the last of tokens, followed by more.
func lastToken(tokens, more []int32) int32 {
	if len(more) > 0 {
		tokens = more
	}
	return tokens[len(tokens)-1]
}

// draftKind is how a test drafts.
type draftKind struct {
	name  string
	model chain // nil: no drafts
	drawn bool  // with the request's sampling parameters; else the most likely tokens
}

// Speculative sampling keeps the target's distribution, for every kind of draft.
func TestSpeculationKeepsTheDistribution(t *testing.T) {
	const vocab, length, trials = 5, 3, 2000
	r := rand.New(rand.NewPCG(1, 2))
	target := newChain(r, vocab, 1)
	near := newChain(r, vocab, 0.3)
	for i := range near {
		for j := range near[i] {
			near[i][j] += target[i][j]
		}
	}
	far := newChain(r, vocab, 3)
	kinds := []draftKind{
		{name: "no drafts"},
		{name: "certain, far", model: far},
		{name: "drawn", model: near, drawn: true},
		{name: "drawn, far", model: far, drawn: true},
	}
	for _, temperature := range []float64{0.5, 1, 1.5} {
		for _, s := range []struct {
			name string
			runtime.Sampling
		}{
			{"plain", runtime.Sampling{}},
			{"top_p", runtime.Sampling{TopP: 0.8}},
			{"penalties", runtime.Sampling{RepeatPenalty: 1.3, PresencePenalty: 0.4, FrequencyPenalty: 0.2, RepeatLastN: 2}},
			{"all", runtime.Sampling{TopK: 4, TopP: 0.95, MinP: 0.05, RepeatPenalty: 1.2,
				RepeatLastN: -1, LogitBias: map[int32]float64{2: 0.7}}},
		} {
			s.Temperature = temperature
			for _, d := range kinds {
				if !d.drawn && temperature != 1 {
					continue // drafts that are not drawn do not depend on the temperature
				}
				t.Run(fmt.Sprintf("%g %s %s", temperature, s.name, d.name), func(t *testing.T) {
					count := speculate(t, target, d, s.Sampling, length, trials)
					checkCounts(t, count, sequences(target, s.Sampling, length), trials)
				})
			}
		}
	}
}

// sequences returns the probability of every sequence of a length that follows token 0.
func sequences(c chain, s runtime.Sampling, length int) map[string]float64 {
	out := map[string]float64{}
	var walk func(history []int32, p float64)
	walk = func(history []int32, p float64) {
		if len(history) == length+1 {
			out[fmt.Sprint(history[1:])] += p
			return
		}
		for id, q := range distribution(c[history[len(history)-1]], s, history) {
			if q > 0 {
				walk(append(slices.Clone(history), int32(id)), p*q)
			}
		}
	}
	walk([]int32{0}, 1)
	return out
}

// speculate generates sequences that follow token 0 with a target and its drafts, in one batch, and counts them.
func speculate(t *testing.T, target chain, d draftKind, s runtime.Sampling, length, trials int) map[string]int {
	t.Helper()
	vocab := len(target)
	r := rand.New(rand.NewPCG(3, 4))
	all := make([]Sampler, trials)
	running := make([]*Sampler, trials)
	for i := range all {
		all[i] = Sampler{sampling: s, seed: r.Uint64(), history: []int32{0}}
		if !d.drawn {
			all[i].sampling.Seed = new(int64)
		}
		running[i] = &all[i]
	}
	mlxtest.Do(t, func(e *mlx.Thread) {
		for len(running) > 0 {
			e.Scope(func() {
				requests := make([]Request, len(running))
				for i, one := range running {
					requests[i] = Request{Sampler: one, TopLogProbs: -1}
				}
				for step := 0; d.model != nil && step < 3; step++ {
					var rows []float32
					var drafts []DraftRow
					for i, one := range running {
						for _, v := range d.model[lastToken(one.history, requests[i].Drafts)] {
							rows = append(rows, float32(v))
						}
						drafts = append(drafts, DraftRow{Sampler: one, Drawn: one.DrawsDrafts()})
					}
					tokens, q := Drafts(mlx.FromSlice(e, rows, len(running), vocab), drafts, step)
					for i, token := range mlx.ToSlice[int32](tokens) {
						requests[i].Drafts = append(requests[i].Drafts, token)
						if requests[i].Q = append(requests[i].Q, q[i]); (q[i] != nil) != d.drawn {
							t.Errorf("a draft has the distribution %v, drawn is %v", q[i], d.drawn)
						}
					}
				}
				var rows []float32
				for i := range requests {
					for j := range requests[i].Rows() {
						for _, v := range target[lastToken(running[i].history, requests[i].Drafts[:j])] {
							rows = append(rows, float32(v))
						}
					}
				}
				var unfinished []*Sampler
				for i, o := range decide(mlx.FromSlice(e, rows, len(rows)/vocab, vocab), requests...) {
					one := running[i]
					one.history = append(append(one.history, requests[i].Drafts[:o.Accepted]...), o.Next)
					if one.position != uint64(len(one.history)-1) {
						t.Errorf("after %d tokens %d are counted", len(one.history)-1, one.position)
					}
					if len(one.history) <= length {
						unfinished = append(unfinished, one)
					}
				}
				running = unfinished
			})
		}
	})
	count := map[string]int{}
	for _, one := range all {
		count[fmt.Sprint(one.history[1:length+1])]++
	}
	return count
}

// checkCounts compares counts with a distribution by a chi-square test at a level of 1 in 100,000. The seeds are fixed.
func checkCounts(t *testing.T, count map[string]int, want map[string]float64, n int) {
	t.Helper()
	var sum, rareSeen, rareWanted float64
	cells := 0
	add := func(seen, wanted float64) {
		sum += (seen - wanted) * (seen - wanted) / wanted
		cells++
	}
	for key, p := range want {
		if seen, wanted := float64(count[key]), p*float64(n); wanted < 5 {
			rareSeen, rareWanted = rareSeen+seen, rareWanted+wanted
		} else {
			add(seen, wanted)
		}
	}
	if rareWanted > 1 {
		add(rareSeen, rareWanted)
	}
	for key, n := range count {
		if want[key] == 0 {
			t.Errorf("%s has probability 0 and was drawn %d times", key, n)
		}
	}
	if cells < 2 {
		return
	}
	// Quantile by the approximation of Wilson and Hilferty, https://doi.org/10.1073/pnas.17.12.684.
	free := float64(cells - 1)
	limit := free * math.Pow(1-2/(9*free)+4.265*math.Sqrt(2/(9*free)), 3)
	if sum > limit {
		t.Errorf("chi-square %.1f of %d cells, at most %.1f", sum, cells, limit)
	}
}

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
