package quality

import "math"

// exp returns e^x for x <= 0, to within two units of the last place where the result is a normal number, and 0 where
// it is smaller. It takes a fraction of the time of math.Exp, and a comparison spends most of its time here.
//
// x = (k + f) ln 2 with f in steps of 1/steps: a table has 2^f, k goes into the exponent, and a polynomial does the
// rest.
func exp(x float64) float64 {
	if x < smallest {
		return 0
	}
	// Adding and subtracting 1.5*2^52 rounds to the nearest integer, and leaves it in the low bits in between.
	const shift = 0x1.8p52
	n := x*(steps/math.Ln2) + shift
	bits := math.Float64bits(n)
	n -= shift
	r := x - n*ln2High - n*ln2Low
	p := r + r*r*(1.0/2+r*(1.0/6+r*(1.0/24+r*(1.0/120))))
	t := powers[bits%steps]
	return math.Float64frombits(math.Float64bits(t+t*p) + bits/steps<<52)
}

const (
	steps    = 64
	smallest = -708 // e^x is a normal number

	// ln 2 / steps in two parts. Multiples of the first are exact.
	ln2High = 0x1.62e42fee00000p-1 / steps
	ln2Low  = 0x1.a39ef35793c76p-33 / steps
)

// powers are 2^(i/steps).
var powers = func() (p [steps]float64) {
	for i := range p {
		p[i] = math.Exp2(float64(i) / steps)
	}
	return p
}()
