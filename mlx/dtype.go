package mlx

import "fmt"

// DType is the type of an array's elements. The zero value is Bool.
type DType int32

// The types, in the order of the bridge's codes (call.cc).
const (
	Bool DType = iota
	Uint8
	Uint16
	Uint32
	Uint64
	Int8
	Int16
	Int32
	Int64
	Float16
	Float32
	Float64
	BFloat16
)

var dtypes = [...]struct {
	name string
	size int
}{
	{"bool", 1}, {"uint8", 1}, {"uint16", 2}, {"uint32", 4}, {"uint64", 8},
	{"int8", 1}, {"int16", 2}, {"int32", 4}, {"int64", 8},
	{"float16", 2}, {"float32", 4}, {"float64", 8}, {"bfloat16", 2},
}

// String returns the engine's name of the type, such as "bfloat16".
func (d DType) String() string {
	if d < 0 || int(d) >= len(dtypes) {
		return fmt.Sprintf("dtype(%d)", int32(d))
	}
	return dtypes[d].name
}

// Size returns the number of bytes of one element, or 0 if d is not a type.
func (d DType) Size() int {
	if d < 0 || int(d) >= len(dtypes) {
		return 0
	}
	return dtypes[d].size
}

// Float reports whether d is a floating-point type.
func (d DType) Float() bool { return d >= Float16 && d <= BFloat16 }

// QuantMode is the format of quantized weights.
type QuantMode int32

// The modes, in the order of the bridge's codes (call.cc).
const (
	Affine QuantMode = iota
	MXFP4
	MXFP8
	NVFP4
)
