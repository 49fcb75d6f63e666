package quantize

import "math"

// divideBy divides elements in the arithmetic of type d. It leaves F16 subnormals unchanged.
func divideBy(w []uint32, scale float32, d DType) {
	switch d {
	case BF16:
		for i, b := range w {
			b = math.Float32bits(math.Float32frombits(b) / scale)
			w[i] = (b + 0x7fff + b>>16&1) &^ 0xffff
		}
	case F16:
		for i, b := range w {
			b = math.Float32bits(math.Float32frombits(b) / scale)
			w[i] = (b + 0xfff + b>>13&1) &^ 0x1fff
		}
	default:
		for i, b := range w {
			w[i] = math.Float32bits(math.Float32frombits(b) / scale)
		}
	}
}

// encodeNV encodes whole groups of nvfp4. The caller has checked the lengths.
func (t Type) encodeNV(dst Blocks, src []byte, from DType) error {
	var w block
	size := t.GroupSizes(from)
	for g := range len(src) / size.Source {
		group := src[g*size.Source:][:size.Source]
		lo, hi := from.load(&w, group)
		if !finite(lo, hi) {
			return notFinite(group, from, g*t.Group())
		}
		peak := math.Float32frombits(max(lo&^signBit, hi&^signBit))
		code := toE4M3(from.Round(peak / 6))
		scale := e4m3[code]
		dst.Scales[g] = code
		packed := dst.Packed[g*size.Packed:][:size.Packed]
		if code == 0 { // all quotients are infinite or NaN, so every code is equally far
			clear(packed)
			continue
		}
		if code < 0x7e || peak/scale < quarterLimit {
			divideBy(w[:t.Group()], scale, from) // subnormals have the code 0
			packE2M1(packed, w[:t.Group()], 0)
			continue
		}
		// The quotients may be too large to distinguish codes.
		for k := range packed {
			even := from.Round(math.Float32frombits(w[2*k]) / scale)
			odd := from.Round(math.Float32frombits(w[2*k+1]) / scale)
			packed[k] = nearestE2M1(even) | nearestE2M1(odd)<<4
		}
	}
	return nil
}
