package weighted

import (
	"math"

	"github.com/ingotml/ingot/quantize"
)

// e2m1 are the magnitudes of the codes of a 4-bit float, and the bounds between them.
var (
	e2m1   = [8]float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}
	bounds = [7]float64{0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5}
)

// e4m3 are the values of the codes of nvfp4's scales, in ascending order.
var e4m3 = func() (table [0x7f]float64) {
	for c := range table {
		exp, fraction := c>>3, float64(c&7)
		if exp == 0 {
			table[c] = math.Ldexp(fraction, -9)
		} else {
			table[c] = math.Ldexp(8+fraction, exp-10)
		}
	}
	return table
}()

// nearestFloat returns the code of a 4-bit float nearest to a value, and its value. A tie goes to the code nearer to
// zero, and there is no code for -0.
func (p parameters) nearestFloat(v float64) (code uint8, value float64) {
	if p.scale == 0 {
		return 0, 0
	}
	q := math.Abs(v) / p.scale
	for code < 7 && q > bounds[code] {
		code++
	}
	value = float64(p.scale * e2m1[code])
	if v < 0 && code > 0 {
		return code | 8, -value
	}
	return code, value
}

// Candidates of fitFloat, relative to the rule of package quantize: exponents of mxfp4, and codes of nvfp4's scales.
const (
	firstExponent, lastExponent = -1, 1
	firstScale, lastScale       = -6, 6
)

// fitFloat chooses the scale of a group among those near the one that represents its largest element.
func (w *work) fitFloat(x, d []float64) parameters {
	var peak float64
	for _, v := range x {
		peak = max(peak, math.Abs(v))
	}
	if peak == 0 {
		return w.scaleOf(127, 0)
	}
	best, least, known := parameters{}, math.Inf(1), math.Inf(1)
	// loss returns the weighted squared error, or a part of it that is at least as large as most.
	loss := func(p parameters, most float64) (sum float64) {
		for i, v := range x {
			_, q := p.nearestFloat(v)
			sum += float64(float64(d[i]*(v-q)) * (v - q))
			if sum >= most {
				break
			}
		}
		return sum
	}
	try := func(p parameters) {
		if p.scale == 0 {
			return
		}
		if sum := loss(p, min(least, known)); sum < least {
			best, least = p, sum
		}
	}
	// The candidate in the middle is mostly good, so no candidate needs more than its error to be out.
	middle := func(p parameters) {
		if p.scale != 0 {
			known = math.Nextafter(loss(p, math.Inf(1)), math.Inf(1))
		}
	}
	if w.of == quantize.MXFP4 {
		_, exp := math.Frexp(peak / 6)
		middle(w.scaleOf(min(max(exp+127, 0), 254), 0))
		for e := firstExponent; e <= lastExponent; e++ {
			try(w.scaleOf(min(max(exp+e+127, 0), 254), 0))
		}
		return best
	}
	nearest := 0
	for nearest < len(e4m3)-1 && e4m3[nearest] < peak/6 {
		nearest++
	}
	middle(w.scaleOf(0, nearest))
	for c := firstScale; c <= lastScale; c++ {
		if at := nearest + c; at > 0 && at < len(e4m3) {
			try(w.scaleOf(0, at))
		}
	}
	if math.IsInf(least, 1) {
		return w.scaleOf(0, 0)
	}
	return best
}

// scaleOf returns the parameters of mxfp4's exponent or of nvfp4's code.
func (w *work) scaleOf(exponent, code int) parameters {
	if w.of == quantize.MXFP4 {
		return parameters{scale: math.Ldexp(1, exponent-127), stored: uint8(exponent)}
	}
	return parameters{scale: e4m3[code], stored: uint8(code)}
}
