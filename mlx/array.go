package mlx

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unsafe"
)

// Array is a node of the engine's graph, or its elements once they are computed. It is immutable.
type Array struct {
	t      *Thread
	handle unsafe.Pointer // nil once freed
	dtype  DType
	shape  []int
	kept   bool
}

// Shape returns the length of each axis. The caller must not modify it.
func (a *Array) Shape() []int { return a.shape }

// Dim returns the length of one axis. A negative axis counts from the end.
func (a *Array) Dim(axis int) int {
	if axis < 0 {
		axis += len(a.shape)
	}
	if axis < 0 || axis >= len(a.shape) {
		panic(&Error{Message: fmt.Sprintf("Dim(%v): no axis %d", a, axis)})
	}
	return a.shape[axis]
}

// Rank returns the number of axes.
func (a *Array) Rank() int { return len(a.shape) }

// DType returns the type of the elements.
func (a *Array) DType() DType { return a.dtype }

// Thread returns the engine that the array belongs to.
func (a *Array) Thread() *Thread { return a.t }

// Size returns the number of elements.
func (a *Array) Size() int { return product(a.shape) }

// Bytes returns the size of the elements in bytes. The buffer behind them may be larger (see BufferBytes) or shared.
func (a *Array) Bytes() int { return a.Size() * a.dtype.Size() }

// String returns the type and shape, such as "bfloat16[2 3]".
func (a *Array) String() string {
	if a == nil {
		return "nil"
	}
	return a.dtype.String() + strings.ReplaceAll(fmt.Sprint(a.shape), ",", "")
}

// check panics if the array is nil or freed.
func (a *Array) check(op string) {
	if a == nil {
		panic(&Error{Message: op + ": an array is nil"})
	}
	if a.handle == nil {
		panic(&Error{Message: fmt.Sprintf("%s(%v): the array was freed", op, a)})
	}
}

// product returns the number of elements of a shape, or -1 if it overflows.
func product(shape []int) int {
	n := 1
	for _, d := range shape {
		hi, lo := bits.Mul64(uint64(n), uint64(d))
		if hi != 0 || lo > math.MaxInt/8 {
			return -1
		}
		n = int(lo)
	}
	return n
}

// SameShape reports whether two arrays have equal shapes.
func SameShape(a, b *Array) bool { return slices.Equal(a.shape, b.shape) }
