package quantize

import "math"

// widen reads len(dst) elements as float32, rounded to nearest, ties to even.
func (d DType) widen(dst []float32, src []byte) {
	switch d {
	case BF16:
		widenBF16(dst, src)
	case F16:
		widenF16s(dst, src)
	case F32:
		widenF32(dst, src)
	case F64:
		widenF64(dst, src)
	case I8:
		widenInt[int8](dst, src, 1)
	case U8:
		widenInt[uint8](dst, src, 1)
	case I16:
		widenInt[int16](dst, src, 2)
	case U16:
		widenInt[uint16](dst, src, 2)
	case I32:
		widenInt[int32](dst, src, 4)
	case U32:
		widenInt[uint32](dst, src, 4)
	case I64:
		widenInt[int64](dst, src, 8)
	case U64:
		widenInt[uint64](dst, src, 8)
	case Bool:
		for i := range dst {
			dst[i] = float32(min(src[i], 1))
		}
	}
}

func widenBF16(dst []float32, src []byte) {
	src = src[:2*len(dst)]
	for i := range dst {
		dst[i] = fromBF16(le.Uint16(src[2*i:]))
	}
}

func widenF16s(dst []float32, src []byte) {
	src = src[:2*len(dst)]
	for i := range dst {
		dst[i] = fromF16(le.Uint16(src[2*i:]))
	}
}

func widenF32(dst []float32, src []byte) {
	src = src[:4*len(dst)]
	for i := range dst {
		dst[i] = math.Float32frombits(le.Uint32(src[4*i:]))
	}
}

func widenF64(dst []float32, src []byte) {
	src = src[:8*len(dst)]
	for i := range dst {
		b := le.Uint64(src[8*i:])
		dst[i] = float32(math.Float64frombits(b))
		if b&^(1<<63) > 0x7ff<<52 {
			dst[i] = math.Float32frombits(uint32(b>>63)<<31 | 0x7fc00000 | uint32(b>>29)&0x3fffff)
		}
	}
}

// number is a Go type that holds an element.
type number interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64
}

func widenInt[T number](dst []float32, src []byte, size int) {
	var b [8]byte
	for i := range dst {
		copy(b[:size], src[i*size:])
		dst[i] = float32(T(le.Uint64(b[:])))
	}
}
