package prefix

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
)

func (w *world) walk(r *rand.Rand, steps int) {
	var live []*talk
	var past [][]Key
	budget := w.budget
	for range steps {
		if budget > 0 && r.IntN(20) == 0 {
			w.SetBudget(1 + r.Int64N(budget))
			w.check()
			w.SetBudget(budget)
		}
		switch op := r.IntN(10); {
		case op < 4 && len(live) < 6:
			var prompt []Key
			if len(past) > 0 && r.IntN(4) > 0 {
				p := past[r.IntN(len(past))]
				prompt = slices.Clone(p[:r.IntN(len(p)+1)])
			}
			for range 1 + r.IntN(12) {
				prompt = append(prompt, Key(1+r.IntN(3)))
			}
			w.owner = []string{"", "", "a", "b", Public}[len(prompt)%5]
			live = append(live, w.begin(prompt...))
		case len(live) == 0:
		case op < 8:
			s := live[r.IntN(len(live))]
			if o := s.seq.Offset(); o < len(s.keys) {
				s.eval(o + 1 + r.IntN(len(s.keys)-o))
				if r.IntN(3) == 0 {
					s.Snapshot(r.IntN(2) == 0)
				}
			} else {
				s.say(Key(1 + r.IntN(3)))
			}
			s.same()
		default:
			i := r.IntN(len(live))
			s := live[i]
			live = slices.Delete(live, i, i+1)
			past = append(past, s.keys)
			if r.IntN(5) == 0 {
				s.Leave()
				s.seq.Free()
			} else {
				s.end()
			}
		}
		w.check()
	}
	for _, s := range live {
		s.end()
	}
}

// Random requests see what they would see without a tree.
func TestRandomRequests(t *testing.T) {
	for _, env := range environments {
		for seed := range runtest.Pick[uint64](6, 60) {
			t.Run(fmt.Sprint(env.name, " ", seed), func(t *testing.T) {
				in(t, env, []int64{0, 3000, 20000}[seed%3], func(w *world) { w.walk(rand.New(rand.NewPCG(seed, 3)), 250) })
			})
		}
	}
}
