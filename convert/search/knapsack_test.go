package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/quantize"
)

// randomSearch has tensors with options of random sizes and errors.
func randomSearch(rng *rand.Rand, tensors, options int) *searcher {
	s := &searcher{fixed: 100, params: 1000}
	for range tensors {
		t := &tensor{share: 1, group: len(s.groups)}
		s.groups = append(s.groups, group{coefficient: rng.Float64()})
		bytes := int64(10)
		for k := range options {
			t.options = append(t.options, option{
				of: quantize.Types()[k], planned: plan.Tensor{Bytes: bytes},
				err: math.Exp(-float64(bytes)/30) * (1 + rng.Float64()),
			})
			bytes += 1 + rng.Int64N(20)
		}
		s.tensors = append(s.tensors, t)
	}
	return s
}

// best finds the least loss within a size by trying all choices.
func best(s *searcher, limit int64) float64 {
	least := math.Inf(1)
	c := make(choice, len(s.tensors))
	var visit func(int)
	visit = func(i int) {
		if i == len(c) {
			if s.bytes(c) <= limit {
				least = min(least, s.loss(c))
			}
			return
		}
		for k := range s.tensors[i].options {
			c[i] = k
			visit(i + 1)
		}
	}
	visit(0)
	return least
}

// The knapsack is close to the best choice, and never beyond the limit.
func TestWithin(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var have, want float64
	for range 100 {
		s := randomSearch(rng, 5, 5)
		smallest, _ := s.path()
		limit := s.bytes(smallest) + 30 + rng.Int64N(150)
		c, ok := s.within(limit)
		if !ok || s.bytes(c) > limit {
			t.Fatalf("%d bytes, limit %d", s.bytes(c), limit)
		}
		have, want = have+s.loss(c), want+best(s, limit)
		if _, ok := s.within(s.bytes(smallest) - 1); ok {
			t.Fatal("a limit below the smallest choice is met")
		}
	}
	if have > 1.1*want {
		t.Errorf("loss %g, the best is %g", have, want)
	}
}

// Below meets a loss if any choice does, and fewer steps do not.
func TestBelow(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		s := randomSearch(rng, 6, 5)
		smallest, steps := s.path()
		goal := s.loss(smallest) * rng.Float64()
		c, reached := s.below(goal)
		if reached != (s.loss(c) <= goal) {
			t.Fatalf("loss %g, goal %g, reached %v", s.loss(c), goal, reached)
		}
		for _, st := range steps {
			smallest[st.tensor] = st.to
		}
		if !reached && !slices.Equal(c, smallest) {
			t.Fatal("not reached, and not the best")
		}
	}
}

func TestKind(t *testing.T) {
	for name, want := range map[string]struct {
		kind  string
		layer int
	}{
		"model.layers.12.mlp.up_proj.weight": {"model.layers.*.mlp.up_proj.weight", 12},
		"h.0.attn.c_attn.weight":             {"h.*.attn.c_attn.weight", 0},
		"lm_head.weight":                     {"lm_head.weight", -1},
		"model.layers.x2.weight":             {"model.layers.x2.weight", -1},
	} {
		if kind, layer := kindOf(name); kind != want.kind || layer != want.layer {
			t.Errorf("%s: %s, %d", name, kind, layer)
		}
	}
}
