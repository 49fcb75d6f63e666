package quantize

import "fmt"

// Type is a storage format of weights: quantized, or a cast. The zero value keeps the source's type. Types are
// comparable and marshal to text.
type Type uint16

// The formats. Affine formats have groups of 64; [Type.WithGroup] returns the others.
const (
	Int2 = Type(modeAffine<<modeShift | 6<<groupShift | 2)
	Int3 = Type(modeAffine<<modeShift | 6<<groupShift | 3)
	Int4 = Type(modeAffine<<modeShift | 6<<groupShift | 4)
	Int5 = Type(modeAffine<<modeShift | 6<<groupShift | 5)
	Int6 = Type(modeAffine<<modeShift | 6<<groupShift | 6)
	Int8 = Type(modeAffine<<modeShift | 6<<groupShift | 8)

	// MXFP4 and MXFP8 are E2M1 and E4M3 in groups of 32 with a power-of-two scale (OCP Microscaling Formats 1.0).
	MXFP4 = Type(modeMX<<modeShift | 5<<groupShift | 4)
	MXFP8 = Type(modeMX<<modeShift | 5<<groupShift | 8)
	// NVFP4 is E2M1 in groups of 16 with an E4M3 scale, without a per-tensor scale.
	NVFP4 = Type(modeNV<<modeShift | 4<<groupShift | 4)

	// ToBF16, ToF16 and ToF32 are casts.
	ToBF16 = Type(modeCast<<modeShift | 1<<groupShift | 16)
	ToF16  = Type(modeCast<<modeShift | 0<<groupShift | 16)
	ToF32  = Type(modeCast<<modeShift | 0<<groupShift | 32)
)

// A Type packs its mode, log2 of its group size, and its bits.
const (
	modeShift  = 12
	groupShift = 6

	modeCast   = 1
	modeAffine = 2
	modeMX     = 3
	modeNV     = 4
)

func (t Type) mode() int { return int(t >> modeShift) }

// Types lists all formats, in the order that messages use.
func Types() []Type {
	var all []Type
	for _, t := range []Type{Int2, Int3, Int4, Int5, Int6, Int8} {
		for _, group := range []int{64, 32, 128} {
			all = append(all, t.WithGroup(group))
		}
	}
	return append(all, MXFP4, MXFP8, NVFP4, ToBF16, ToF16, ToF32)
}

// WithGroup returns the affine format with t's bits and group size 32, 64 or 128. It returns 0 for other formats and
// sizes.
func (t Type) WithGroup(group int) Type {
	log, ok := map[int]Type{32: 5, 64: 6, 128: 7}[group]
	if t.mode() != modeAffine || !ok {
		return 0
	}
	return t&^(15<<groupShift) | log<<groupShift
}

// IsCast reports whether t is a cast.
func (t Type) IsCast() bool { return t.mode() == modeCast }

// DType returns the target type of a cast, or "".
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

// Bits returns the bits of one element's code, without scales and biases.
func (t Type) Bits() int { return int(t & (1<<groupShift - 1)) }

// Group returns the number of elements that share a scale, or 0 for casts.
func (t Type) Group() int {
	if t.mode() < modeAffine {
		return 0
	}
	return 1 << (t >> groupShift & 15)
}

// Mode returns the engine's name of the format: "affine", "mxfp4", "mxfp8" or "nvfp4", or "" for casts.
func (t Type) Mode() string {
	switch {
	case t.mode() == modeAffine:
		return "affine"
	case t.mode() > modeAffine:
		return t.String()
	}
	return ""
}

// Rule returns the version of the encoding arithmetic: "affine-1", "mxfp4-1", "mxfp8-1", "nvfp4-1", or "" for casts,
// which the types define. The bytes of a rule never change.
func (t Type) Rule() string {
	if m := t.Mode(); m != "" {
		return m + "-1"
	}
	return ""
}

// BitsPerWeight returns the bits per element for a source of type src, including scales and biases. Affine scales have
// type src.
func (t Type) BitsPerWeight(src DType) float64 {
	s := t.GroupSizes(src)
	if t.Group() == 0 {
		return float64(t.Bits())
	}
	return float64(8*(s.Packed+s.Scales+s.Biases)) / float64(t.Group())
}

// String returns the name for [ParseType]: "int4" (the default group of 64), "int3-g32", "mxfp4", "bf16", or "" for the
// zero Type.
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
