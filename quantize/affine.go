package quantize

import "math"

// affineStep returns the scale and bias of a group with minimum lo and maximum hi. The end farther from zero becomes
// the bias and is encoded exactly: it is an integer number of steps. If the whole group is within half a step of the
// smallest scale around zero, the bias is 0.
//
// The scale is 0 if all elements are equal and large, and infinite if hi-lo is.
func affineStep(lo, hi float32, bits int) (scale, bias float32) {
	scale = max((hi-lo)/float32(int(1)<<bits-1), 1e-7)
	edge := lo
	if !(abs(lo) > abs(hi)) {
		edge, scale = hi, -scale
	}
	// Adding and subtracting 1.5*2^52 rounds to the nearest integer, ties to even.
	steps := float32(float64(edge/scale) + 0x1.8p52 - 0x1.8p52)
	if steps != 0 {
		scale, bias = edge/steps, edge
	}
	return scale, bias
}

func abs(f float32) float32 { return math.Float32frombits(math.Float32bits(f) &^ signBit) }

// usable reports whether dividing by scale gives a number. If not, all codes are 0.
func usable(scale float32) bool { return scale != 0 && !math.IsInf(float64(scale), 0) }

// encodeAffine encodes whole groups. The caller has checked the lengths.
func (t Type) encodeAffine(dst Blocks, src []byte, from DType) error {
	if hasAVX2 {
		return t.encodeAffineAVX2(dst, src, from)
	}
	return t.encodeAffineGo(dst, src, from)
}

// encodeAffineGo is the reference implementation.
func (t Type) encodeAffineGo(dst Blocks, src []byte, from DType) error {
	var w block
	size, bits := t.GroupSizes(from), t.Bits()
	for g := range len(src) / size.Source {
		group := src[g*size.Source:][:size.Source]
		lo, hi := from.load(&w, group)
		if !finite(lo, hi) {
			return notFinite(group, from, g*t.Group())
		}
		scale, bias := affineStep(math.Float32frombits(lo), math.Float32frombits(hi), bits)
		packed := dst.Packed[g*size.Packed:][:size.Packed]
		if usable(scale) {
			pack(packed, w[:t.Group()], scale, bias, bits)
		} else {
			clear(packed)
		}
		from.put(dst.Scales, g, scale)
		from.put(dst.Biases, g, bias)
	}
	return nil
}
