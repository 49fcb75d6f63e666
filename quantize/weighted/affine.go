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
	var sw, sx float64
	for i, v := range x {
		sw += d[i]
		sx += float64(d[i] * v)
	}
	least := math.Inf(1)
	try := func(p parameters) {
		if e := w.errorOf(p, x, d); e < least {
			least, best = e, p
		}
	}
	for k := firstStretch; k <= lastStretch; k++ {
		shrunk := 1 - stretchStep*float64(k)
		scale := (hi - lo) / limit * shrunk
		middle := (hi + lo) / 2
		p := parameters{scale: scale, bias: middle - float64(scale*limit)/2, affine: true}
		for range 1 + refinements {
			next, ok := w.leastSquares(p, x, d, sw, sx)
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

// roundTo rounds to a number of a type. In float16, scales beyond the largest number become it, and there is one zero.
func roundTo(v float64, d quantize.DType) float64 {
	f := float32(v)
	if d != quantize.F16 {
		return float64(d.Round(f))
	}
	if f == 0 {
		return 0
	}
	return min(max(float64(d.Round(f)), -largestF16), largestF16)
}

const largestF16 = 65504

// leastSquares returns the scale and bias with the least weighted squares for the codes nearest to x. There are none if
// all codes are equal. sw and sx are the sums of d and of d*x.
func (w *work) leastSquares(p parameters, x, d []float64, sw, sx float64) (parameters, bool) {
	sq, sqq, sxq := sums(x, d, p.bias, 1/p.scale, w.limit())
	det := float64(sw*sqq) - float64(sq*sq)
	if !(det > 1e-9*float64(sw*sqq)) {
		return parameters{}, false
	}
	next := parameters{affine: true}
	next.scale = (float64(sw*sxq) - float64(sx*sq)) / det
	next.bias = (float64(sqq*sx) - float64(sq*sxq)) / det
	return next, next.scale > 0 && !math.IsInf(next.scale, 0)
}

// errorOf returns the weighted squared error of parameters.
func (w *work) errorOf(p parameters, x, d []float64) float64 {
	if p.scale == 0 {
		return math.Inf(1)
	}
	return distance(x, d, p.bias, p.scale, 1/p.scale, w.limit())
}
