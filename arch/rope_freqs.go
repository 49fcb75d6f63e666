package arch

import "math"

// Frequencies returns the inverse frequency of each rotated pair of a head of headDim elements (the angle of pair i at
// position p is p*freqs[i]), and the factor by which cosine and sine are multiplied. Where they depend on the length of
// the text ([Rope.ByLength]) they are those of a short one.
func (r Rope) Frequencies(headDim int) (freqs []float64, attentionScale float64) {
	return r.FrequenciesAt(headDim, 0)
}

// ByLength tells whether the frequencies depend on the length of the text: then all positions of a text that grew beyond
// the returned number of tokens are rotated anew, by [Rope.FrequenciesAt] its length.
func (r Rope) ByLength() (limit int, ok bool) {
	switch r.Type {
	case RopeLong:
		return r.OriginalMax, true
	case RopeDynamic:
		return r.Context, true
	}
	return 0, false
}

// FrequenciesAt is [Rope.Frequencies] for a text of length tokens.
//
// A pair with frequency 0 does not rotate (proportional).
//
// The steps are those of transformers 5.23 (modeling_rope_utils.py), which computes the correction range in float64 and
// everything that has one value per pair in float32; each such step is rounded to float32 here too. Only the power
// function may differ, by its own last digit.
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
		blend = r.llama3
	case RopeYarn:
		blend = r.yarnBlend(dim)
		scale = r.yarnScale()
	case RopeLong:
		blend = r.longBlend(length)
		scale = r.longScale()
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
			freqs[i] = float64(blend(i, period)) // they work on the period
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

// longBlend divides by the factor of each pair, that for short or for long texts. https://arxiv.org/abs/2402.13753
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

func (r Rope) longScale() float64 {
	switch {
	case r.AttentionFactor != 0:
		return r.AttentionFactor
	case r.Factor <= 1:
		return 1
	}
	return math.Sqrt(1 + math.Log(r.Factor)/math.Log(float64(r.OriginalMax)))
}

// reach is the longest sequence of a model with max_position_embeddings context: where yarn and dynamic scale beyond it,
// that length. In the other types the key says already what they scale to.
func (r Rope) reach(context int) int64 {
	scaled := 0.0
	switch r.Type {
	case RopeYarn:
		scaled = r.Factor * float64(r.OriginalMax)
	case RopeDynamic:
		scaled = r.Factor * float64(r.Context)
	}
	return int64(min(max(float64(context), scaled), maxContext))
}

// dynamicTheta grows the base with the text beyond the context that the model was made for. The length is a tensor in the
// reference, so each step is in float32.
func (r Rope) dynamicTheta(dim, length int) float32 {
	if length <= r.Context {
		return float32(r.Theta)
	}
	grown := float32(float32(r.Factor)*float32(length)) / float32(r.Context)
	grown -= float32(r.Factor - 1)
	return float32(r.Theta) * float32(math.Pow(float64(grown), float64(float32(float64(dim)/float64(dim-2)))))
}

// proportional rotates the first pairs of a head with the frequencies that they have when all of it is rotated; the others
// stand still.
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
