package number

import "math/big"

// Inhabited reports whether n has a number, where that is quick to see without its automaton.
func (n *Rule) Inhabited() (is, known bool) {
	if n.Low != nil && n.High != nil {
		if d := n.Low.Value.Cmp(n.High.Value); d > 0 || d == 0 && (n.Low.Exclusive || n.High.Exclusive) {
			return false, true
		}
	}
	// All numbers are multiples of step.
	step := big.NewRat(1, 1)
	if n.Integers || len(n.Multiples) > 0 {
		for i, m := range n.Multiples {
			if i == 0 && !(n.Integers && !n.Fractions) {
				step.Set(m)
			} else {
				step = leastCommon(step, m)
			}
		}
	} else {
		step.SetFrac64(1, 2)
	}
	for _, m := range n.NotMultiples {
		if len(n.Multiples) > 0 && new(big.Rat).Quo(step, m).IsInt() {
			return false, true
		}
	}
	if n.Low != nil && n.High != nil {
		middle := new(big.Rat).Add(n.Low.Value, n.High.Value)
		if n.has(middle.Mul(middle, big.NewRat(1, 2))) {
			return true, true
		}
	}
	// One of the multiples next to a bound, or to 0, is most often such a number.
	from := []*big.Rat{new(big.Rat)}
	for _, b := range []*Bound{n.Low, n.High} {
		if b != nil {
			from = append(from, b.Value)
		}
	}
	for _, f := range from {
		near := new(big.Rat).Quo(f, step)
		first := new(big.Int).Quo(near.Num(), near.Denom())
		for k := int64(-8); k <= 8; k++ {
			r := new(big.Rat).SetInt(new(big.Int).Add(first, big.NewInt(k)))
			if n.has(r.Mul(r, step)) {
				return true, true
			}
		}
	}
	return false, false
}

// Numbers that all languages have a text of.
const (
	sureDigits = 1_000_000_000
	surePlaces = 9
)

// has reports whether r is a number of n, and surely has a text.
func (n *Rule) has(r *big.Rat) bool {
	if r.IsInt() && !n.Integers || !r.IsInt() && !n.Fractions || !n.Holds(r) {
		return false
	}
	for _, m := range n.NotMultiples {
		if new(big.Rat).Quo(r, m).IsInt() {
			return false
		}
	}
	for _, e := range n.Excluded {
		if r.Cmp(e) == 0 {
			return false
		}
	}
	places, exact := r.FloatPrec()
	return exact && places <= surePlaces && new(big.Rat).Abs(r).Cmp(big.NewRat(sureDigits, 1)) < 0
}

// leastCommon returns the least number that is a multiple of both.
func leastCommon(a, b *big.Rat) *big.Rat {
	gcd := new(big.Int).GCD(nil, nil, a.Denom(), b.Denom())
	num := new(big.Int).GCD(nil, nil, a.Num(), b.Num())
	lcm := new(big.Int).Mul(a.Num(), b.Num())
	return new(big.Rat).SetFrac(lcm.Quo(lcm, num), gcd)
}
