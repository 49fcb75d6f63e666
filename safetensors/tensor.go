package safetensors

import (
	"fmt"
	"math"
	"math/bits"
)

// MaxDims is the largest number of dimensions that is accepted: that of NumPy 2, one of the libraries that write
// these files.
const MaxDims = 64

// Tensor is one entry of a header.
type Tensor struct {
	Name       string
	DType      DType
	Shape      []int64 // empty for a scalar; a dimension may be 0
	Begin, End int64   // bytes, relative to the data region
}

// NumElements returns the product of the shape (1 for a scalar), -1 when the shape is invalid.
func (t Tensor) NumElements() int64 {
	n, err := numElements(t.Shape)
	if err != nil {
		return -1
	}
	return n
}

// Size returns the bytes that dtype and shape ask for, -1 when one of them is invalid.
func (t Tensor) Size() int64 {
	n, err := sizeOf(t.DType, t.Shape)
	if err != nil {
		return -1
	}
	return n
}

// numElements multiplies the dimensions. Zeros do not hide an overflow of the others, so the result does
// not depend on the order in which a later user of the shape multiplies.
func numElements(shape []int64) (int64, error) {
	if len(shape) > MaxDims {
		return 0, fmt.Errorf("%w: %d dimensions, at most %d are supported", ErrShape, len(shape), MaxDims)
	}
	product, zero := uint64(1), false
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("%w %v: negative dimension", ErrShape, shape)
		}
		if d == 0 {
			zero = true
			continue
		}
		hi, lo := bits.Mul64(product, uint64(d))
		if hi != 0 || lo > math.MaxInt64 {
			return 0, fmt.Errorf("%w %v: the number of elements overflows", ErrShape, shape)
		}
		product = lo
	}
	if zero {
		return 0, nil
	}
	return int64(product), nil
}

// sizeOf returns the bytes of a tensor. Elements are packed without padding, so only whole
// bytes are possible.
func sizeOf(d DType, shape []int64) (int64, error) {
	width := d.Bits()
	if width == 0 {
		return 0, fmt.Errorf("%w %s", ErrDType, quote(string(d)))
	}
	n, err := numElements(shape)
	if err != nil {
		return 0, err
	}
	hi, lo := bits.Mul64(uint64(n), uint64(width))
	if hi != 0 {
		return 0, fmt.Errorf("%w %v: the size overflows", ErrShape, shape)
	}
	if lo%8 != 0 {
		return 0, fmt.Errorf("%w %v: %d elements of %d bits do not end on a whole byte", ErrShape, shape, n, width)
	}
	return int64(lo / 8), nil
}
