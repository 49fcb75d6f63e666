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
