package quantize

import (
	"fmt"
	"strings"
)

// aliases are names with more than one meaning in use. The note states the meaning chosen here.
var aliases = map[string]struct {
	t    Type
	note string
}{
	"q4": {Int4, "q4 is int4: affine, 4 bits, groups of 64"},
	"q8": {Int8, "q8 is int8: affine, 8 bits, groups of 64"},
	"fp4": {MXFP4,
		"fp4 is mxfp4, 4-bit floats with a power-of-two scale per 32 elements; " +
			"the other 4-bit float format is nvfp4, and int4 is an integer format"},
	"fp8": {MXFP8, "fp8 is mxfp8, 8-bit floats with a power-of-two scale per 32 elements; int8 is an integer format"},
}

// ParseType parses a format's name, in any case: int2, int3, int4, int5, int6, int8, optionally with -g32, -g64 (the
// default) or -g128; mxfp4, mxfp8, nvfp4; bf16, f16, f32; and the aliases q4, q8, fp4 and fp8. For an alias, note is
// one line for the user that states its meaning. The error for an unknown name lists all names.
func ParseType(s string) (t Type, note string, err error) {
	name := strings.ToLower(s)
	if a, ok := aliases[name]; ok {
		return a.t, a.note, nil
	}
	for _, t := range Types() {
		if name == t.String() || t.Group() == 64 && name == t.String()+"-g64" {
			return t, "", nil
		}
	}
	return 0, "", fmt.Errorf("%w %q, want int2, int3, int4, int5, int6 or int8 (each also with -g32, -g64 or -g128), "+
		"mxfp4, mxfp8, nvfp4, bf16, f16 or f32 (or an alias: q4, q8, fp4, fp8)", ErrType, s)
}

// MarshalText returns the name. The zero Type is empty.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText accepts what [ParseType] accepts, and "" for the zero Type.
func (t *Type) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*t = 0
		return nil
	}
	v, _, err := ParseType(string(text))
	if err == nil {
		*t = v
	}
	return err
}
