package arch

import "math"

// Frequencies returns the inverse frequency of each rotated pair of a head of headDim elements (the angle of pair i at
// position p is p*freqs[i]), and the factor by which cosine and sine are multiplied.
//
// The steps are those of transformers 5.23 (modeling_rope_utils.py), which computes the correction range in float64 and
// everything that has one value per pair in float32; each such step is rounded to float32 here too. Only the power
// function may differ, by its own last digit.
func (r Rope) Frequencies(headDim int) (freqs []float64, attentionScale float64) {
	partial := r.PartialFactor
	if partial == 0 {
		partial = 1
	}
	dim := int(float64(headDim) * partial)
	freqs = make([]float64, (dim+1)/2)
	scale := 1.0
	var blend func(i int, freq float32) float32
	switch r.Type {
	case RopeLinear:
		blend = func(_ int, freq float32) float32 { return freq / float32(r.Factor) }
	case RopeLlama3:
		blend = r.llama3
	case RopeYarn:
		blend = r.yarnBlend(dim)
		scale = r.yarnScale()
	default:
		blend = func(_ int, freq float32) float32 { return freq }
	}
	for i := range freqs {
		exponent := float32(2*i) / float32(dim)
		period := float32(math.Pow(float64(float32(r.Theta)), float64(exponent)))
		if r.Type == RopeYarn {
			freqs[i] = float64(blend(i, period)) // it mixes two inverses of the period
			continue
		}
		freqs[i] = float64(blend(i, 1/period))
	}
	return freqs, scale
}

// llama3 leaves short wavelengths, divides long ones by the factor, and goes smoothly from one to the other between.
func (r Rope) llama3(_ int, freq float32) float32 {
	old := float64(r.OriginalMax)
	longest, shortest := float32(old/r.LowFreqFactor), float32(old/r.HighFreqFactor)
	// A number over a tensor is the tensor's reciprocal times the number in torch.
	wavelength := float32(1/freq) * float32(2*math.Pi)
	switch {
	case wavelength > longest:
		return freq / float32(r.Factor)
	case wavelength < shortest:
		return freq
	}
	smooth := (float32(float32(1/wavelength)*float32(old)) - float32(r.LowFreqFactor)) / float32(r.HighFreqFactor-r.LowFreqFactor)
	scaled := float32(float32(1-smooth)*freq) / float32(r.Factor)
	return scaled + float32(smooth*freq)
}

// yarnBlend returns the frequency of pair i from its unscaled period: extrapolated below the correction range,
// interpolated above it, mixed in between. https://arxiv.org/abs/2309.00071
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
