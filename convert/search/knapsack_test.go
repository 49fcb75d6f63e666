package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
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
		smallest, _ := s.path(false)
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
		smallest, steps := s.path(false)
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

// Every type has a cost. With time as the cost, a type that takes longer than one with less loss is never chosen, even
// with fewer bytes; unless only such types meet a size.
func TestTime(t *testing.T) {
	for _, of := range quantize.Types() {
		if decodeCosts[of] == 0 && !of.IsCast() {
			t.Errorf("%s has no cost", of)
		}
	}
	slow, fast := quantize.Int3.WithGroup(32), quantize.Int4
	if decodeCosts[slow] <= decodeCosts[fast] {
		t.Fatalf("%s is not slower than %s", slow, fast)
	}
	s := &searcher{Options: Options{Goal: Goal{Speed: true}}, groups: []group{{coefficient: 1}}}
	for range 3 {
		s.tensors = append(s.tensors, &tensor{
			plain: plan.Tensor{Source: safetensors.BF16, Shape: []int64{64, 64}}, share: 1, options: []option{
				{of: slow, planned: plan.Tensor{Bytes: 2048}, err: 2},
				{of: fast, planned: plan.Tensor{Bytes: 2304}, err: 1},
				{planned: plan.Tensor{Bytes: 8192}},
			},
		})
	}
	for goal, want := range map[float64]choice{5: {1, 1, 1}, 2: {2, 1, 1}, 0: {2, 2, 2}} {
		if c, ok := s.below(goal); !ok || !slices.Equal(c, want) {
			t.Errorf("a loss of %g: %v, want %v", goal, c, want)
		}
	}
	if c, ok := s.within(3*2304 + 8192 - 2304); !ok || !slices.Equal(c, choice{2, 1, 1}) {
		t.Errorf("a size: %v", c)
	}
	if c, ok := s.within(2*2048 + 2304); !ok || s.bytes(c) > 2*2048+2304 || s.loss(c) != 5 {
		t.Errorf("a size that only slow types meet: %v", c)
	}
	if _, ok := s.within(3*2048 - 1); ok {
		t.Error("a limit below the smallest choice is met")
	}
}
