package weighted

import (
	"math"

	"github.com/ingotml/ingot/quantize"
)

// Candidates of fitAffine: the range of a group is stretched or shrunk in steps, because clipping its ends may be worth
// the finer steps in between.
const (
	firstStretch, lastStretch = -1, 5
	stretchStep               = 0.05
	refinements               = 1 // least squares after the first one of a candidate
)

// fitAffine chooses scale and bias of a group. It starts from several ranges. For the codes of each, it finds the scale
// and bias with the least weighted squares, and then their codes, and so on. The best of all, rounded to the type that
// they are stored in, wins; the first of equals.
func (w *work) fitAffine(x, d []float64) parameters {
	lo, hi := x[0], x[0]
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	best := w.rounded(0, lo)
	if lo == hi {
		return best
	}
	limit := w.limit()
	least := math.Inf(1)
	try := func(p parameters) {
		if e := w.errorOf(p, x, d, least); e < least {
			least, best = e, p
		}
	}
	for k := firstStretch; k <= lastStretch; k++ {
		shrunk := 1 - stretchStep*float64(k)
		scale := (hi - lo) / limit * shrunk
		middle := (hi + lo) / 2
		p := parameters{scale: scale, bias: middle - float64(scale*limit)/2, affine: true}
		for range 1 + refinements {
			w.codesOf(p, x)
			next, ok := w.leastSquares(x, d)
			if !ok {
				break
			}
			try(w.rounded(next.scale, next.bias))
			if next == p {
				break
			}
			p = next
		}
	}
	if math.IsInf(least, 1) {
		try(w.rounded((hi-lo)/limit, lo))
	}
	return best
}

// rounded returns parameters in the type that they are stored in.
func (w *work) rounded(scale, bias float64) parameters {
	return parameters{scale: roundTo(scale, w.scales), bias: roundTo(bias, w.scales), affine: true}
}

// roundTo rounds to the nearest number of a type, ties to even.
func roundTo(v float64, d quantize.DType) float64 {
	f := float32(v)
	switch d {
	case quantize.BF16:
		b := math.Float32bits(f)
		return float64(math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff))
	case quantize.F16:
		return roundF16(f)
	}
	return float64(f)
}

// roundF16 rounds to 11 significant bits, and to multiples of 2^-24. Scales beyond the largest number become it.
func roundF16(f float32) float64 {
	v := float64(f)
	if v == 0 {
		return 0
	}
	_, exp := math.Frexp(v)
	unit := math.Ldexp(1, max(exp-11, -24))
	return min(max(math.RoundToEven(v/unit)*unit, -65504), 65504)
}

// codesOf sets the codes nearest to x.
func (w *work) codesOf(p parameters, x []float64) {
	limit := w.limit()
	by := 1 / p.scale
	for i, v := range x {
		// Adding and subtracting 1.5*2^52 rounds to the nearest integer, ties to even.
		n := float64((v-p.bias)*by) + 0x1.8p52 - 0x1.8p52
		w.codes[i] = min(max(n, 0), limit)
	}
}

// leastSquares returns the scale and bias with the least weighted squares for the codes. There are none if all codes
// are equal.
func (w *work) leastSquares(x, d []float64) (parameters, bool) {
	var sw, sx, sq, sqq, sxq float64
	for i, q := range w.codes {
		dq, dx := float64(d[i]*q), float64(d[i]*x[i])
		sw += d[i]
		sx += dx
		sq += dq
		sqq += float64(dq * q)
		sxq += float64(dx * q)
	}
	det := float64(sw*sqq) - float64(sq*sq)
	if !(det > 1e-9*float64(sw*sqq)) {
		return parameters{}, false
	}
	p := parameters{affine: true}
	p.scale = (float64(sw*sxq) - float64(sx*sq)) / det
	p.bias = (float64(sqq*sx) - float64(sq*sxq)) / det
	return p, p.scale > 0 && !math.IsInf(p.scale, 0)
}

// errorOf returns the weighted squared error of parameters, or more than least once it is clear that it is larger.
func (w *work) errorOf(p parameters, x, d []float64, least float64) float64 {
	if p.scale == 0 {
		return math.Inf(1)
	}
	limit := w.limit()
	by := 1 / p.scale
	var sum float64
	for i, v := range x {
		n := float64((v-p.bias)*by) + 0x1.8p52 - 0x1.8p52
		n = min(max(n, 0), limit)
		e := v - p.bias - float64(p.scale*n)
		sum += float64(float64(d[i]*e) * e)
		if i&15 == 15 && sum >= least {
			return sum
		}
	}
	return sum
}
