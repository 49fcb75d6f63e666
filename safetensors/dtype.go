package safetensors

// DType is the element type of a tensor, spelled as in the header.
type DType string

// The dtypes of version 0.8 of the reference library.
const (
	Bool       DType = "BOOL" // one byte, 0 or 1
	F4         DType = "F4"   // E2M1, two elements per byte
	F6E2M3     DType = "F6_E2M3"
	F6E3M2     DType = "F6_E3M2"
	U8         DType = "U8"
	I8         DType = "I8"
	F8E5M2     DType = "F8_E5M2"
	F8E4M3     DType = "F8_E4M3" // the variant without infinities (E4M3FN)
	F8E8M0     DType = "F8_E8M0" // powers of two: scales of the MX formats
	F8E4M3FNUZ DType = "F8_E4M3FNUZ"
	F8E5M2FNUZ DType = "F8_E5M2FNUZ"
	I16        DType = "I16"
	U16        DType = "U16"
	F16        DType = "F16"
	BF16       DType = "BF16"
	I32        DType = "I32"
	U32        DType = "U32"
	F32        DType = "F32"
	C64        DType = "C64" // two F32
	F64        DType = "F64"
	I64        DType = "I64"
	U64        DType = "U64"
)

var dtypes = []DType{
	Bool, F4, F6E2M3, F6E3M2, U8, I8, F8E5M2, F8E4M3, F8E8M0, F8E4M3FNUZ, F8E5M2FNUZ, I16, U16, F16, BF16, I32, U32, F32,
	C64, F64, I64, U64,
}

// knownDType returns the dtype of a name, without making a copy of it.
func knownDType(name []byte) (DType, bool) {
	for _, d := range dtypes {
		if string(name) == string(d) {
			return d, true
		}
	}
	return "", false
}

// Bits returns the size of an element in bits, or 0 for an unknown dtype.
func (d DType) Bits() int {
	switch d {
	case F4:
		return 4
	case F6E2M3, F6E3M2:
		return 6
	case Bool, U8, I8, F8E5M2, F8E4M3, F8E8M0, F8E4M3FNUZ, F8E5M2FNUZ:
		return 8
	case I16, U16, F16, BF16:
		return 16
	case I32, U32, F32:
		return 32
	case C64, F64, I64, U64:
		return 64
	}
	return 0
}
