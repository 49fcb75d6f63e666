package quantize

import "math"

// store writes values as elements of type d, rounded to nearest, ties to even. The caller has checked the length of
// dst.
func (d DType) store(dst []byte, v []float32) {
	switch d {
	case BF16:
		storeBF16(dst, v)
	case F16:
		storeF16(dst, v)
	default:
		storeF32(dst, v)
	}
}

func storeBF16(dst []byte, v []float32) {
	dst = dst[:2*len(v)]
	for i, f := range v {
		le.PutUint16(dst[2*i:], toBF16(f))
	}
}

func storeF16(dst []byte, v []float32) {
	dst = dst[:2*len(v)]
	for i, f := range v {
		le.PutUint16(dst[2*i:], toF16(f))
	}
}

func storeF32(dst []byte, v []float32) {
	dst = dst[:4*len(v)]
	for i, f := range v {
		le.PutUint32(dst[4*i:], math.Float32bits(f))
	}
}

// put writes element i.
func (d DType) put(dst []byte, i int, v float32) {
	switch d {
	case BF16:
		le.PutUint16(dst[2*i:], toBF16(v))
	case F16:
		le.PutUint16(dst[2*i:], toF16(v))
	default:
		le.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}
