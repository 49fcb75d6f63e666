package safetensors

import (
	"fmt"
	"math"
	"math/bits"
)

// MaxDims is the largest supported number of dimensions. It is the limit of NumPy 2, one of the libraries that write
// these files.
const MaxDims = 64

// Tensor is a tensor's entry in a header.
type Tensor struct {
	Name       string
	DType      DType
	Shape      []int64 // empty for a scalar; dimensions may be 0
	Begin, End int64   // in bytes, relative to the data region
}

// NumElements returns the product of the dimensions (1 for a scalar), or -1 if the shape is invalid.
func (t Tensor) NumElements() int64 {
	n, err := numElements(t.Shape)
	if err != nil {
		return -1
	}
	return n
}

// Size returns the size of the data in bytes, or -1 if dtype or shape is invalid.
func (t Tensor) Size() int64 {
	n, err := sizeOf(t.DType, t.Shape)
	if err != nil {
		return -1
	}
	return n
}

// numElements returns the product of the dimensions. An overflow of the nonzero dimensions is an error even if another
// one is 0, so that the result does not depend on the order of multiplication.
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

// sizeOf returns the size of a tensor in bytes. Elements are packed without padding, so their total must be a whole
// number of bytes.
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
		return 0, fmt.Errorf("%w %v: %d elements of %d bits are not a whole number of bytes", ErrShape, shape, n, width)
	}
	return int64(lo / 8), nil
}
