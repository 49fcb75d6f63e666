package draft

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ingotml/ingot/runtime"
)

// machine simulates step times and acceptance rates.
type machine struct {
	step   func(rows int) float64 // seconds of a step
	draft  float64                // seconds of a draft step
	right  func(place int) float64
	noise  float64
	clock  float64
	tokens int
	*rand.Rand
}

func (m *machine) took(seconds float64) time.Duration {
	seconds *= 1 + m.noise*m.Float64()
	m.clock += seconds
	return time.Duration(seconds * 1e9)
}

// run simulates the given number of requests and steps, and returns tokens per second.
func (m *machine) run(d *Depths, requests, steps int) float64 {
	m.clock, m.tokens = 0, 0
	states := make([]DepthState, requests)
	for range steps {
		var wishes []DepthRequest
		for i := range states {
			wishes = append(wishes, DepthRequest{State: &states[i], MaxTokens: runtime.MaxDraft})
		}
		d.Plan(requests, wishes)
		rows, deepest, drafting := requests, 0, 0
		for i := range states {
			n := states[i].Depth
			rows += n
			deepest = max(deepest, n)
			if n > 0 {
				drafting++
			}
		}
		if deepest > 0 {
			d.AddDraft(requests, drafting, deepest, m.took(m.draft*float64(deepest)))
		}
		d.AddStep(requests, rows, m.took(m.step(rows)))
		for i := range states {
			n, accepted := states[i].Depth, 0
			for accepted < n && m.Float64() < m.right(accepted) {
				accepted++
			}
			if n > 0 {
				d.AddResult(&states[i], n, accepted)
			}
			m.tokens += 1 + accepted
		}
	}
	return float64(m.tokens) / m.clock
}

// The chosen depth is nearly as fast as the best fixed one, and never much slower than no drafts.
func TestDepthFindsTheBest(t *testing.T) {
	flat := func(rows int) float64 { return 0.020 + 0.0005*float64(rows) }
	steep := func(rows int) float64 { return 0.002 + 0.010*float64(rows) }
	stairs := func(rows int) float64 { return 0.010 * float64((rows+3)/4) }
	always := func(p float64) func(int) float64 { return func(int) float64 { return p } }
	fades := func(place int) float64 { return 0.9 / float64(1+place) }
	for _, test := range []struct {
		name     string
		m        machine
		requests int
	}{
		{"good draft, memory bound", machine{step: flat, draft: 0.001, right: always(0.8)}, 1},
		{"bad draft", machine{step: flat, draft: 0.002, right: always(0.05)}, 1},
		{"expensive draft", machine{step: flat, draft: 0.02, right: always(0.6)}, 1},
		{"rows cost as much as steps", machine{step: steep, draft: 0.0001, right: always(0.8)}, 1},
		{"stairs", machine{step: stairs, draft: 0.0005, right: always(0.7)}, 1},
		{"first drafts are good, later ones not", machine{step: flat, draft: 0.001, right: fades}, 1},
		{"eight requests, memory bound", machine{step: flat, draft: 0.001, right: always(0.8)}, 8},
		{"eight requests, bad draft", machine{step: flat, draft: 0.002, right: always(0.05)}, 8},
		{"eight requests, rows cost", machine{step: steep, draft: 0.0001, right: always(0.6)}, 8},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := test.m
			m.noise = 0.1
			m.Rand = rand.New(rand.NewPCG(1, 1))
			var best, none float64
			at := 0
			for n := range runtime.MaxDraft + 1 {
				expected, probability := 1.0, 1.0
				for k := range n {
					probability *= m.right(k)
					expected += probability
				}
				rate := float64(test.requests) * expected / ((m.step(test.requests*(n+1)) + m.draft*float64(n)) * (1 + m.noise/2))
				if n == 0 {
					none = rate
				}
				if rate > best {
					best, at = rate, n
				}
			}
			got := m.run(&Depths{}, test.requests, 2000)
			t.Logf("%.1f tokens a second; %.1f without drafts, %.1f with %d always", got, none, best, at)
			if got < 0.9*best || got < 0.96*none {
				t.Errorf("%.1f tokens a second; %.1f without drafts, %.1f with %d always", got, none, best, at)
			}
		})
	}
}

// Probes do not slow down a model whose draft steps take longer than its own, not even in a short text.
func TestDepthProbeCost(t *testing.T) {
	for _, steps := range []int{50, 256, 4000} {
		m := machine{
			step: func(rows int) float64 { return 0.00012 + 0.00003*float64(rows) }, draft: 0.0004,
			right: func(int) float64 { return 0.8 }, Rand: rand.New(rand.NewPCG(1, 3)),
		}
		none := 1 / m.step(1)
		if got := m.run(&Depths{}, 1, steps); got < 0.97*none {
			t.Errorf("%d steps: %.0f tokens a second, %.0f without drafts", steps, got, none)
		}
	}
}

// The controller follows changes: it resumes a draft that becomes good, and stops one that becomes bad.
func TestDepthFollowsChanges(t *testing.T) {
	share := 0.05
	m := machine{
		step: func(rows int) float64 { return 0.020 + 0.0005*float64(rows) }, draft: 0.001,
		right: func(int) float64 { return share }, Rand: rand.New(rand.NewPCG(1, 2)),
	}
	d := &Depths{}
	bad := m.run(d, 1, 500)
	share = 0.9
	good := m.run(d, 1, 1500)
	share = 0.05
	again := m.run(d, 1, 500)
	if good < 2*bad || again < 0.85*bad {
		t.Errorf("%.1f, %.1f, then %.1f tokens a second", bad, good, again)
	}
}

func TestCurve(t *testing.T) {
	c := curve{}
	saw := func(rows int, took float64) { addSample(c, rows, took) }
	if got := c.at(3); got != 0 {
		t.Errorf("%v without measurements", got)
	}
	saw(1, 1)
	for rows, want := range map[int]float64{1: 1, 3: 1 + 2*defaultRowCost, 0: 1} {
		if got := c.at(rows); got != want {
			t.Errorf("%d rows take %v, want %v", rows, got, want)
		}
	}
	saw(5, 2)
	for rows, want := range map[int]float64{1: 1, 3: 1.5, 5: 2, 9: 3} {
		if got := c.at(rows); got != want {
			t.Errorf("%d rows take %v, want %v", rows, got, want)
		}
	}
}
