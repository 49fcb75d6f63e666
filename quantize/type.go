package quantize

import "fmt"

// Type is a number format that weights are stored in: a quantized one, or a plain one that they are cast to. The zero value is
// none: the source stays as it is. Types are comparable, and text in JSON.
type Type uint16

// The formats. Affine ones are in groups of 64; [Type.WithGroup] gives the others.
const (
	Int2 = Type(modeAffine<<modeShift | 6<<groupShift | 2)
	Int3 = Type(modeAffine<<modeShift | 6<<groupShift | 3)
	Int4 = Type(modeAffine<<modeShift | 6<<groupShift | 4)
	Int5 = Type(modeAffine<<modeShift | 6<<groupShift | 5)
	Int6 = Type(modeAffine<<modeShift | 6<<groupShift | 6)
	Int8 = Type(modeAffine<<modeShift | 6<<groupShift | 8)

	// MXFP4 and MXFP8 are E2M1 and E4M3 in groups of 32 with a power of two (OCP Microscaling Formats 1.0).
	MXFP4 = Type(modeMX<<modeShift | 5<<groupShift | 4)
	MXFP8 = Type(modeMX<<modeShift | 5<<groupShift | 8)
	// NVFP4 is E2M1 in groups of 16 with an E4M3 scale, and no scale of the whole tensor.
	NVFP4 = Type(modeNV<<modeShift | 4<<groupShift | 4)

	// ToBF16, ToF16 and ToF32 are casts.
	ToBF16 = Type(modeCast<<modeShift | 1<<groupShift | 16)
	ToF16  = Type(modeCast<<modeShift | 0<<groupShift | 16)
	ToF32  = Type(modeCast<<modeShift | 0<<groupShift | 32)
)

// A Type is its mode, the logarithm of its group, and its bits.
const (
	modeShift  = 12
	groupShift = 6

	modeCast   = 1
	modeAffine = 2
	modeMX     = 3
	modeNV     = 4
)

func (t Type) mode() int { return int(t >> modeShift) }

// Types lists all formats, in the order in which messages name them.
func Types() []Type {
	var all []Type
	for _, t := range []Type{Int2, Int3, Int4, Int5, Int6, Int8} {
		for _, group := range []int{64, 32, 128} {
			all = append(all, t.WithGroup(group))
		}
	}
	return append(all, MXFP4, MXFP8, NVFP4, ToBF16, ToF16, ToF32)
}

// WithGroup returns the affine format of t's bits with another group: 32, 64 or 128. Other formats and other groups give 0.
func (t Type) WithGroup(group int) Type {
	log, ok := map[int]Type{32: 5, 64: 6, 128: 7}[group]
	if t.mode() != modeAffine || !ok {
		return 0
	}
	return t&^(15<<groupShift) | log<<groupShift
}

// IsCast reports whether t is a plain type, without groups.
func (t Type) IsCast() bool { return t.mode() == modeCast }

// DType returns what a cast casts to, "" for other formats.
func (t Type) DType() DType {
	switch t {
	case ToBF16:
		return BF16
	case ToF16:
		return F16
	case ToF32:
		return F32
	}
	return ""
}

// Bits returns the size of an element's code in bits, without scales and biases.
func (t Type) Bits() int { return int(t & (1<<groupShift - 1)) }

// Group returns the number of elements that share a scale, 0 for casts.
func (t Type) Group() int {
	if t.mode() < modeAffine {
		return 0
	}
	return 1 << (t >> groupShift & 15)
}

// Mode returns the engine's name of the family: "affine", "mxfp4", "mxfp8" or "nvfp4"; "" for casts.
func (t Type) Mode() string {
	switch {
	case t.mode() == modeAffine:
		return "affine"
	case t.mode() > modeAffine:
		return t.String()
	}
	return ""
}

// Rule returns the version of the arithmetic that makes codes and scales: "affine-1", "mxfp4-1", "mxfp8-1", "nvfp4-1"; "" for
// casts, which are defined by the types alone. Equal rules give equal bytes for ever.
func (t Type) Rule() string {
	if m := t.Mode(); m != "" {
		return m + "-1"
	}
	return ""
}

// BitsPerWeight returns the bits that one element takes, its share of scales and biases counted, when elements of type
// src are coded. The scales of affine formats are of type src.
func (t Type) BitsPerWeight(src DType) float64 {
	s := t.GroupSizes(src)
	if t.Group() == 0 {
		return float64(t.Bits())
	}
	return float64(8*(s.Packed+s.Scales+s.Biases)) / float64(t.Group())
}

// String returns the name that [ParseType] reads: "int4" for the usual group of 64, "int3-g32", "mxfp4", "bf16"; "" for none.
func (t Type) String() string {
	switch t {
	case 0:
		return ""
	case MXFP4:
		return "mxfp4"
	case MXFP8:
		return "mxfp8"
	case NVFP4:
		return "nvfp4"
	case ToBF16:
		return "bf16"
	case ToF16:
		return "f16"
	case ToF32:
		return "f32"
	}
	if t.mode() != modeAffine {
		return fmt.Sprintf("Type(%d)", uint16(t))
	}
	if t.Group() == 64 {
		return fmt.Sprintf("int%d", t.Bits())
	}
	return fmt.Sprintf("int%d-g%d", t.Bits(), t.Group())
}
