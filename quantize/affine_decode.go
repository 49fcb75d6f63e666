package quantize

import "math"

// decodeAffine decodes whole groups. The product and the sum are each rounded to the type of the scales, and the sum
// then to the target type.
func (t Type) decodeAffine(dst []byte, to DType, src Blocks, scales DType) {
	var (
		codes  [128]uint8
		values [128]float32
		table  [256]byte
		params [2]float32
		group  = t.Group()
		size   = t.GroupSizes(scales)
		width  = to.Size() * group
	)
	for ; len(dst) > 0; dst, src = dst[width:], src.after(size) {
		scales.widen(params[:1], src.Scales)
		scales.widen(params[1:], src.Biases)
		unpack(codes[:group], src.Packed[:size.Packed], uint(t.Bits()))
		if n := 1 << t.Bits(); n < group {
			for i := range values[:n] {
				values[i] = float32(i)
			}
			scales.line(values[:n], params[0], params[1])
			to.store(table[:], values[:n])
			lookup(dst, codes[:group], &table, to.Size())
			continue
		}
		for i, c := range codes[:group] {
			values[i] = float32(c)
		}
		scales.line(values[:group], params[0], params[1])
		to.store(dst, values[:group])
	}
}

// line replaces codes by code*scale + bias, computed in type d.
func (d DType) line(v []float32, scale, bias float32) {
	switch d {
	case BF16:
		lineBF16(v, scale, bias)
	case F16:
		lineF16(v, scale, bias)
	default:
		lineF32(v, scale, bias)
	}
}

func lineBF16(v []float32, scale, bias float32) {
	if !finite(math.Float32bits(scale), math.Float32bits(bias)) {
		for i, c := range v {
			v[i] = roundBF16(roundBF16(c*scale) + bias)
		}
		return
	}
	for i, c := range v { // as above, without NaN
		p := math.Float32bits(c * scale)
		p = (p + 0x7fff + p>>16&1) &^ 0xffff
		s := math.Float32bits(math.Float32frombits(p) + bias)
		s = (s + 0x7fff + s>>16&1) &^ 0xffff
		v[i] = math.Float32frombits(s)
	}
}

func lineF16(v []float32, scale, bias float32) {
	for i, c := range v {
		v[i] = roundF16(roundF16(c*scale) + bias)
	}
}

func lineF32(v []float32, scale, bias float32) {
	for i, c := range v {
		// The conversion prevents a fused multiply-add.
		r := float32(c*scale) + bias
		if r != r {
			r = math.Float32frombits(defaultNaN)
		}
		v[i] = r
	}
}

// defaultNaN is the result of 0*infinity on x86-64; other processors set another sign.
const defaultNaN = 0xffc00000
