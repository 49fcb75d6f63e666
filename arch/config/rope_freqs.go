package config

import (
	"math"
	"reflect"
)

// Frequencies returns the inverse frequency of each rotated channel pair of a head with HeadDim elements, and the
// factor that multiplies cosine and sine. The angle of pair i at position p is p*freqs[i]. If the frequencies depend on
// the sequence length ([Rope.ByLength]), these are the ones for short sequences.
func (r Rope) Frequencies(headDim int) (freqs []float64, attentionScale float64) {
	return r.FrequenciesAt(headDim, 0)
}

// ByLength reports whether the frequencies depend on the sequence length. If they do, all positions of a sequence
// longer than limit tokens use the frequencies that [Rope.FrequenciesAt] returns for its length.
func (r Rope) ByLength() (limit int, ok bool) {
	switch r.Type {
	case RopeLong:
		return r.OriginalMax, true
	case RopeDynamic:
		return r.Context, true
	}
	return 0, false
}

// FrequenciesAt is [Rope.Frequencies] for a sequence of length tokens.
//
// A pair with frequency 0 does not rotate (proportional).
//
// It follows transformers 5.23 (modeling_rope_utils.py) step by step: the correction range in float64, all values per
// pair rounded to float32. Only the power function may differ, in its last digit.
func (r Rope) FrequenciesAt(headDim, length int) (freqs []float64, attentionScale float64) {
	if r.Type == RopeProportional {
		return r.proportional(headDim), 1
	}
	partial := r.PartialFactor
	if partial == 0 {
		partial = 1
	}
	dim := int(float64(headDim) * partial)
	freqs = make([]float64, (dim+1)/2)
	scale, theta := 1.0, float32(r.Theta)
	var blend func(i int, freq float32) float32
	switch r.Type {
	case RopeLinear:
		blend = func(_ int, freq float32) float32 { return freq / float32(r.Factor) }
	case RopeLlama3:
		blend = r.Llama3
	case RopeYarn:
		blend = r.yarnBlend(dim)
		scale = r.yarnScale()
	case RopeLong:
		blend = r.longBlend(length)
		scale = r.LongScaleAt(length)
	case RopeDynamic:
		theta = r.dynamicTheta(dim, length)
		blend = func(_ int, freq float32) float32 { return freq }
	default:
		blend = func(_ int, freq float32) float32 { return freq }
	}
	for i := range freqs {
		exponent := float32(2*i) / float32(dim)
		period := float32(math.Pow(float64(theta), float64(exponent)))
		if r.Type == RopeYarn || r.Type == RopeLong {
			freqs[i] = float64(blend(i, period)) // both take the period, not the frequency
			continue
		}
		freqs[i] = float64(blend(i, 1/period))
	}
	return freqs, scale
}

// Llama3 keeps short wavelengths, divides the frequencies of long ones by the factor, and interpolates in between.
func (r Rope) Llama3(_ int, freq float32) float32 {
	old := float64(r.OriginalMax)
	longest, shortest := float32(old/r.LowFreqFactor), float32(old/r.HighFreqFactor)
	// torch evaluates number/tensor as the tensor's reciprocal times the number.
	wavelength := float32(1/freq) * float32(2*math.Pi)
	switch {
	case wavelength > longest:
		return freq / float32(r.Factor)
	case wavelength < shortest || longest == shortest:
		return freq
	}
	rotations := float32(float32(1/wavelength) * float32(old))
	smooth := (rotations - float32(r.LowFreqFactor)) / float32(r.HighFreqFactor-r.LowFreqFactor)
	scaled := float32(float32(1-smooth)*freq) / float32(r.Factor)
	return scaled + float32(smooth*freq)
}

// yarnBlend returns a function from pair i and its unscaled period to its frequency: extrapolated below the correction
// range, interpolated above it, blended inside it. https://arxiv.org/abs/2309.00071
func (r Rope) yarnBlend(dim int) func(int, float32) float32 {
	correction := func(rotations float64) float64 {
		return float64(dim) * math.Log(float64(r.OriginalMax)/(rotations*2*math.Pi)) / (2 * math.Log(r.Theta))
	}
	low, high := correction(r.BetaFast), correction(r.BetaSlow)
	if r.Truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(dim-1))
	if low == high {
		high += 0.001
	}
	return func(i int, period float32) float32 {
		ramp := (float32(i) - float32(low)) / float32(high-low)
		ramp = min(max(ramp, 0), 1)
		keep := 1 - ramp
		extrapolated := 1 / period
		interpolated := 1 / float32(float32(r.Factor)*period)
		return float32(interpolated*float32(1-keep)) + float32(extrapolated*keep)
	}
}

func (r Rope) yarnScale() float64 {
	mscale := func(m float64) float64 {
		if r.Factor <= 1 {
			return 1
		}
		return 0.1*m*math.Log(r.Factor) + 1
	}
	switch {
	case r.AttentionFactor != 0:
		return r.AttentionFactor
	case r.MScale != 0 && r.MScaleAllDim != 0:
		return mscale(r.MScale) / mscale(r.MScaleAllDim)
	}
	return mscale(1)
}

// longBlend returns a function that divides each pair's frequency by its short or long factor.
// https://arxiv.org/abs/2402.13753
func (r Rope) longBlend(length int) func(int, float32) float32 {
	factors := r.ShortFactor
	if length > r.OriginalMax {
		factors = r.LongFactor
	}
	return func(i int, period float32) float32 {
		if i >= len(factors) {
			return 1 / period
		}
		return 1 / float32(float32(factors[i])*period)
	}
}

func (r Rope) LongScaleAt(length int) float64 {
	switch {
	case r.LongScale != 0 && length > r.OriginalMax:
		return r.LongScale
	case r.ShortScale != 0:
		return r.ShortScale
	case r.AttentionFactor != 0:
		return r.AttentionFactor
	case r.Factor <= 1:
		return 1
	}
	return math.Sqrt(1 + math.Log(r.Factor)/math.Log(float64(r.OriginalMax)))
}

// maxSequence returns the longest sequence of a model whose max_position_embeddings is context. yarn and dynamic scale
// beyond that key; for the other types it already is the scaled length.
func (r Rope) maxSequence(context int) int64 {
	scaled := 0.0
	switch r.Type {
	case RopeYarn:
		scaled = r.Factor * float64(r.OriginalMax)
	case RopeDynamic:
		scaled = r.Factor * float64(r.Context)
	}
	return int64(min(max(float64(context), scaled), MaxContext))
}

// dynamicTheta raises theta for sequences longer than the trained context. Each step is in float32, because the length
// is a tensor in transformers.
func (r Rope) dynamicTheta(dim, length int) float32 {
	if length <= r.Context {
		return float32(r.Theta)
	}
	grown := float32(float32(r.Factor)*float32(length)) / float32(r.Context)
	grown -= float32(r.Factor - 1)
	return float32(r.Theta) * float32(math.Pow(float64(grown), float64(float32(float64(dim)/float64(dim-2)))))
}

// proportional rotates the first pairs of a head, with the frequencies of a fully rotated head. The other pairs do not
// rotate.
func (r Rope) proportional(headDim int) []float64 {
	freqs := make([]float64, headDim/2)
	angles := min(int(math.Floor(r.PartialFactor*float64(headDim)/2)), len(freqs))
	for i := range angles {
		exponent := float32(2*i) / float32(headDim)
		period := float32(math.Pow(float64(float32(r.Theta)), float64(exponent)))
		freqs[i] = float64(1 / period / float32(r.Factor))
	}
	return freqs
}

// Same reports whether two ropes rotate heads of a size alike.
func (r Rope) Same(o Rope, dim int) bool {
	if reflect.DeepEqual(r, o) {
		return true
	}
	limit, long := r.ByLength()
	if other, ok := o.ByLength(); ok {
		limit, long = other, true
	}
	for _, length := range []int{0, limit + 1} {
		a, scaleA := r.FrequenciesAt(dim, length)
		b, scaleB := o.FrequenciesAt(dim, length)
		if math.Abs(scaleA-scaleB) > 1e-5*scaleA || len(a) != len(b) {
			return false
		}
		for i := range a {
			if math.Abs(a[i]-b[i]) > 1e-5*math.Abs(a[i]) {
				return false
			}
		}
		if !long {
			break
		}
	}
	return true
}

// HasFactors reports whether llama3 with these parameters divides the frequencies by the factors.
func (r Rope) HasFactors(factors []float32) bool {
	for i, factor := range factors {
		freq := float32(1 / math.Pow(r.Theta, float64(2*i)/float64(2*len(factors))))
		want := freq / r.Llama3(i, freq)
		if math.Abs(float64(factor/want)-1) > 1e-5 {
			return false
		}
	}
	return true
}
