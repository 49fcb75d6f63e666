package quantize

import (
	"fmt"
	"math"
	"slices"
)

// Sizes are in bytes.
type Sizes struct{ Source, Packed, Scales, Biases int }

// GroupSizes returns the bytes of one group before and after encoding, for elements of type src. A cast has groups of
// one element. All sizes are 0 if t does not accept src.
func (t Type) GroupSizes(src DType) Sizes {
	n := src.Size()
	switch {
	case t.check(src) != nil:
		return Sizes{}
	case t.IsCast():
		return Sizes{Source: n, Packed: t.Bits() / 8}
	case t.mode() == modeAffine:
		return Sizes{Source: n * t.Group(), Packed: t.Group() * t.Bits() / 8, Scales: n, Biases: n}
	}
	return Sizes{Source: n * t.Group(), Packed: t.Group() * t.Bits() / 8, Scales: 1}
}

// NewBlocks returns the arrays for a number of groups of elements of type src. They are empty if t does not accept src.
func (t Type) NewBlocks(src DType, groups int) Blocks {
	size := t.GroupSizes(src)
	return Blocks{
		Packed: make([]byte, groups*size.Packed), Scales: make([]byte, groups*size.Scales),
		Biases: make([]byte, groups*size.Biases),
	}
}

// check returns an error if elements of type src cannot become t.
func (t Type) check(src DType) error {
	switch {
	case t.IsCast() && src.Size() > 0, t.mode() >= modeAffine && src.isTarget():
		return nil
	case t.mode() == 0:
		return fmt.Errorf("%w: none", ErrType)
	case t.IsCast():
		return fmt.Errorf("%w: %s cannot be cast", ErrDType, src)
	}
	return fmt.Errorf("%w: %s takes BF16, F16 and F32, not %s (cast it first)", ErrDType, t, src)
}

// Part is one array of an encoded tensor. The zero value means that the format lacks the array.
type Part struct {
	DType DType
	Shape []int64
}

// Size returns the array's bytes.
func (p Part) Size() int64 {
	if p.DType == "" {
		return 0
	}
	n := int64(p.DType.Size())
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// Parts are the arrays of an encoded tensor.
type Parts struct{ Packed, Scales, Biases Part }

// Parts returns the arrays of a tensor of type src. A quantized tensor has at least two dimensions, and the last is a
// multiple of the group size. A cast accepts any shape; its elements are in Packed.
func (t Type) Parts(src DType, shape []int64) (Parts, error) {
	if err := t.check(src); err != nil {
		return Parts{}, err
	}
	if err := checkShape(shape); err != nil {
		return Parts{}, err
	}
	if t.IsCast() {
		return Parts{Packed: Part{t.DType(), slices.Clone(shape)}}, nil
	}
	if len(shape) < 2 {
		return Parts{}, fmt.Errorf("%w %v: %s needs two dimensions or more", ErrShape, shape, t)
	}
	cols := shape[len(shape)-1]
	if cols%int64(t.Group()) != 0 {
		return Parts{}, fmt.Errorf("%w %v: the last dimension is not a multiple of %s's group of %d", ErrShape, shape, t,
			t.Group())
	}
	p := Parts{
		Packed: Part{U32, withLast(shape, cols/32*int64(t.Bits())+cols%32*int64(t.Bits())/32)},
		Scales: Part{U8, withLast(shape, cols/int64(t.Group()))},
	}
	if t.mode() == modeAffine {
		p.Scales.DType = src
		p.Biases = Part{src, slices.Clone(p.Scales.Shape)}
	}
	return p, nil
}

// UnpackedShape returns the tensor's shape, given the shape of its packed array.
func (t Type) UnpackedShape(packed []int64) ([]int64, error) {
	if t.mode() < modeAffine || len(packed) < 2 {
		return nil, fmt.Errorf("%w %v: no packed array of %q", ErrShape, packed, t)
	}
	if err := checkShape(packed); err != nil {
		return nil, err
	}
	words, perGroup := packed[len(packed)-1], int64(t.Group()*t.Bits()/32)
	if words%perGroup != 0 || words/perGroup > math.MaxInt32 {
		return nil, fmt.Errorf("%w %v: the last dimension of a packed array of %s is a multiple of %d", ErrShape, packed, t,
			perGroup)
	}
	return withLast(packed, words/perGroup*int64(t.Group())), nil
}

func withLast(shape []int64, last int64) []int64 {
	out := slices.Clone(shape)
	out[len(out)-1] = last
	return out
}

// checkShape bounds the number of elements so that sizes in bits fit in an int64.
func checkShape(shape []int64) error {
	n := int64(1)
	for _, d := range shape {
		if d < 0 || d > math.MaxInt64>>8 || d != 0 && n > (math.MaxInt64>>8)/d {
			return fmt.Errorf("%w %v", ErrShape, shape)
		}
		if d != 0 {
			n *= d
		}
	}
	return nil
}
