package quantize

// DType is the type of an unquantized element, spelled as in a safetensors header.
type DType string

// The types that [Cast] reads. It writes the first three, and only these can be quantized.
const (
	BF16 DType = "BF16"
	F16  DType = "F16"
	F32  DType = "F32"
	F64  DType = "F64"
	I8   DType = "I8"
	U8   DType = "U8"
	I16  DType = "I16"
	U16  DType = "U16"
	I32  DType = "I32"
	U32  DType = "U32"
	I64  DType = "I64"
	U64  DType = "U64"
	Bool DType = "BOOL"
)

// Size returns the size of an element in bytes, or 0 for an unknown type.
func (d DType) Size() int {
	switch d {
	case I8, U8, Bool:
		return 1
	case BF16, F16, I16, U16:
		return 2
	case F32, I32, U32:
		return 4
	case F64, I64, U64:
		return 8
	}
	return 0
}

// isTarget reports whether the engine computes in d.
func (d DType) isTarget() bool { return d == BF16 || d == F16 || d == F32 }
