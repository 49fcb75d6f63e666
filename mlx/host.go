package mlx

import (
	"fmt"
	"unsafe"
)

// Element is a Go type that array elements can be copied from and to.
type Element interface {
	bool | uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 | float32 | float64
}

func dtypeOf[T Element]() DType {
	var v T
	switch any(v).(type) {
	case bool:
		return Bool
	case uint8:
		return Uint8
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case float32:
		return Float32
	}
	return Float64
}

// FromSlice copies data into an array of the given shape. Without a shape the array is a vector.
func FromSlice[T Element](t *Thread, data []T, shape ...int) *Array {
	if shape == nil {
		shape = []int{len(data)}
	}
	d := dtypeOf[T]()
	if len(data) != product(shape) {
		panic(&Error{Message: fmt.Sprintf("FromSlice: %d elements for %v%v", len(data), d, shape)})
	}
	return fromHost(t, unsafe.Pointer(unsafe.SliceData(data)), d, shape)
}

// FromBytes copies little-endian elements of any type into an array of the given shape.
func FromBytes(t *Thread, data []byte, d DType, shape ...int) *Array {
	if len(data) != product(shape)*d.Size() {
		panic(&Error{Message: fmt.Sprintf("FromBytes: %d bytes for %v%v", len(data), d, shape)})
	}
	return fromHost(t, unsafe.Pointer(unsafe.SliceData(data)), d, shape)
}

// Scalar returns an array without axes.
func Scalar[T Element](t *Thread, v T) *Array { return FromSlice(t, []T{v}, []int{}...) }

func fromHost(t *Thread, data unsafe.Pointer, d DType, shape []int) *Array {
	f := t.frame
	f.reset()
	for _, n := range shape {
		f.int(int64(n))
	}
	t.must(prefix("FromHost", cFromHost(data, d, f.ints, len(shape), f.outs)))
	return t.adopt(f.outs)
}

// ToSlice evaluates a and copies its elements in row-major order. T must match the type of a's elements.
func ToSlice[T Element](a *Array) []T {
	a.check("ToSlice")
	if d := dtypeOf[T](); d != a.dtype {
		panic(&Error{Message: fmt.Sprintf("ToSlice(%v): not %v", a, d)})
	}
	out := make([]T, a.Size())
	a.toHost(unsafe.Pointer(unsafe.SliceData(out)))
	return out
}

// ToBytes evaluates a and copies the bytes of its elements in row-major order, in host byte order.
func (a *Array) ToBytes() []byte {
	a.check("ToBytes")
	out := make([]byte, a.Bytes())
	a.toHost(unsafe.Pointer(unsafe.SliceData(out)))
	return out
}

// Float32s evaluates a and copies its elements, converted to float32.
func (a *Array) Float32s() []float32 {
	a.check("Float32s")
	if a.dtype != Float32 {
		a = AsType(a, Float32)
	}
	return ToSlice[float32](a)
}

// Int evaluates an integer array of one element.
func (a *Array) Int() int {
	a.check("Int")
	if a.Size() != 1 {
		panic(&Error{Message: fmt.Sprintf("Int(%v): not one element", a)})
	}
	return int(ToSlice[int64](AsType(a, Int64))[0])
}

func (a *Array) toHost(to unsafe.Pointer) {
	a.t.must(prefix("ToHost("+a.String()+")", cToHost(a.handle, to, a.Bytes())))
}

func prefix(op, message string) string {
	if message == "" {
		return ""
	}
	return op + ": " + message
}
