package quantize

import "math"

// affineStep finds the scale and the bias of a group whose ends are lo and hi, so that the end farther from zero is coded
// exactly: it becomes the bias, and is a whole number of steps. A group that is zero within half a step of the smallest
// scale has the bias 0.
//
// The scale is 0 where all elements are equal and large, and infinite where hi-lo is.
func affineStep(lo, hi float32, bits int) (scale, bias float32) {
	scale = max((hi-lo)/float32(int(1)<<bits-1), 1e-7)
	edge := lo
	if !(abs(lo) > abs(hi)) {
		edge, scale = hi, -scale
	}
	if steps := float32(math.RoundToEven(float64(edge / scale))); steps != 0 {
		scale, bias = edge/steps, edge
	}
	return scale, bias
}

func abs(f float32) float32 { return math.Float32frombits(math.Float32bits(f) &^ signBit) }

// usable reports whether a quotient by this scale is a number; where it is not, all codes are 0.
func usable(scale float32) bool { return scale != 0 && !math.IsInf(float64(scale), 0) }

// encodeAffine codes whole groups. Slices have the right lengths.
func (t Type) encodeAffine(dst Blocks, src []byte, from DType) error {
	var (
		w      block
		size   = t.GroupSizes(from)
		params [1]float32
	)
	for i := 0; len(src) > 0; i++ {
		lo, hi := from.load(&w, src[:size.Source])
		if !finite(lo, hi) {
			return notFinite(src[:size.Source], from, i*t.Group())
		}
		scale, bias := affineStep(math.Float32frombits(lo), math.Float32frombits(hi), t.Bits())
		if usable(scale) {
			pack(dst.Packed, w[:t.Group()], scale, bias, t.Bits())
		} else {
			clear(dst.Packed[:size.Packed])
		}
		params[0] = scale
		from.store(dst.Scales, params[:])
		params[0] = bias
		from.store(dst.Biases, params[:])
		src = src[size.Source:]
		dst = dst.after(size)
	}
	return nil
}
