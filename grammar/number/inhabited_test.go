package number

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// Inhabited agrees with the automaton, where it knows.
func TestInhabited(t *testing.T) {
	r := rand.New(rand.NewPCG(27, 1))
	value := func() *big.Rat { return big.NewRat(r.Int64N(60)-30, []int64{1, 1, 2, 5, 10}[r.IntN(5)]) }
	bound := func() *Bound {
		if r.IntN(2) == 0 {
			return nil
		}
		return &Bound{value(), r.IntN(2) == 0}
	}
	steps := func() (all []*big.Rat) {
		for range r.IntN(3) {
			all = append(all, big.NewRat(1+r.Int64N(12), []int64{1, 1, 2, 5}[r.IntN(4)]))
		}
		return all
	}
	knownCount, emptyCount := 0, 0
	for range 1500 {
		n := Rule{Integers: r.IntN(3) > 0, Low: bound(), High: bound(), Multiples: steps(), NotMultiples: steps()}
		n.Fractions = !n.Integers || r.IntN(2) == 0
		for range r.IntN(3) {
			n.Excluded = append(n.Excluded, value())
		}
		is, known := n.Inhabited()
		if !known {
			continue
		}
		d, err := n.Language()
		if err != nil {
			t.Fatal(n.Key(), err)
		}
		if d.Empty() == is {
			t.Errorf("%s: inhabited: %v, the automaton is empty: %v", n.Key(), is, d.Empty())
		}
		if knownCount++; !is {
			emptyCount++
		}
	}
	if knownCount < 1000 || emptyCount < 50 {
		t.Errorf("of 1500 rules %d are known, %d of them empty", knownCount, emptyCount)
	}
}
