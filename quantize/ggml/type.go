package ggml

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/quantize"
)

var (
	// ErrType reports a type that ggml does not define, or that has no published decoder.
	ErrType = errors.New("unsupported ggml type")
	// ErrLength reports slices that do not hold a whole number of blocks, or that do not match.
	ErrLength = errors.New("wrong length")
	// ErrRange reports a scale that the engine's format cannot hold.
	ErrRange = errors.New("scale out of range")
)

// Type is the number of a tensor type in a GGUF file.
type Type uint32

// The types, with the numbers of enum ggml_type in ggml.h.
const (
	F32    Type = 0
	F16    Type = 1
	Q4_0   Type = 2
	Q4_1   Type = 3
	Q5_0   Type = 6
	Q5_1   Type = 7
	Q8_0   Type = 8
	Q2_K   Type = 10
	Q3_K   Type = 11
	Q4_K   Type = 12
	Q5_K   Type = 13
	Q6_K   Type = 14
	IQ2XXS Type = 16
	IQ2XS  Type = 17
	IQ3XXS Type = 18
	IQ1S   Type = 19
	IQ4NL  Type = 20
	IQ3S   Type = 21
	IQ2S   Type = 22
	IQ4XS  Type = 23
	I8     Type = 24
	I16    Type = 25
	I32    Type = 26
	I64    Type = 27
	F64    Type = 28
	IQ1M   Type = 29
	BF16   Type = 30
	TQ1_0  Type = 34
	TQ2_0  Type = 35
	MXFP4  Type = 39
	NVFP4  Type = 40
	Q1_0   Type = 41
	Q2_0   Type = 42
	// PQ2_0 is Q2_0 with a scale for 128 elements, of PrismML's fork of llama.cpp. Early files have the number of Q2_0.
	PQ2_0 Type = 142
)

// layout describes a type. A plain type has a dtype, the others a decoder of one block.
type layout struct {
	name     string
	elements int // of a block
	bytes    int // of a block
	dtype    quantize.DType
	decode   func(dst []float32, block []byte)
}

var layouts = map[Type]layout{
	F32:    {name: "F32", elements: 1, bytes: 4, dtype: quantize.F32},
	F16:    {name: "F16", elements: 1, bytes: 2, dtype: quantize.F16},
	BF16:   {name: "BF16", elements: 1, bytes: 2, dtype: quantize.BF16},
	F64:    {name: "F64", elements: 1, bytes: 8, dtype: quantize.F64},
	I8:     {name: "I8", elements: 1, bytes: 1, dtype: quantize.I8},
	I16:    {name: "I16", elements: 1, bytes: 2, dtype: quantize.I16},
	I32:    {name: "I32", elements: 1, bytes: 4, dtype: quantize.I32},
	I64:    {name: "I64", elements: 1, bytes: 8, dtype: quantize.I64},
	Q4_0:   {name: "Q4_0", elements: 32, bytes: 18, decode: decodeQ4_0},
	Q4_1:   {name: "Q4_1", elements: 32, bytes: 20, decode: decodeQ4_1},
	Q5_0:   {name: "Q5_0", elements: 32, bytes: 22, decode: decodeQ5_0},
	Q5_1:   {name: "Q5_1", elements: 32, bytes: 24, decode: decodeQ5_1},
	Q8_0:   {name: "Q8_0", elements: 32, bytes: 34, decode: decodeQ8_0},
	Q2_K:   {name: "Q2_K", elements: super, bytes: 84, decode: decodeQ2_K},
	Q3_K:   {name: "Q3_K", elements: super, bytes: 110, decode: decodeQ3_K},
	Q4_K:   {name: "Q4_K", elements: super, bytes: 144, decode: decodeQ4_K},
	Q5_K:   {name: "Q5_K", elements: super, bytes: 176, decode: decodeQ5_K},
	Q6_K:   {name: "Q6_K", elements: super, bytes: 210, decode: decodeQ6_K},
	IQ2XXS: {name: "IQ2_XXS", elements: super, bytes: 66, decode: decodeIQ2XXS},
	IQ2XS:  {name: "IQ2_XS", elements: super, bytes: 74, decode: decodeIQ2XS},
	IQ2S:   {name: "IQ2_S", elements: super, bytes: 82, decode: decodeIQ2S},
	IQ3XXS: {name: "IQ3_XXS", elements: super, bytes: 98, decode: decodeIQ3XXS},
	IQ3S:   {name: "IQ3_S", elements: super, bytes: 110, decode: decodeIQ3S},
	IQ1S:   {name: "IQ1_S", elements: super, bytes: 50, decode: decodeIQ1S},
	IQ1M:   {name: "IQ1_M", elements: super, bytes: 56, decode: decodeIQ1M},
	IQ4NL:  {name: "IQ4_NL", elements: 32, bytes: 18, decode: decodeIQ4NL},
	IQ4XS:  {name: "IQ4_XS", elements: super, bytes: 136, decode: decodeIQ4XS},
	TQ1_0:  {name: "TQ1_0", elements: super, bytes: 54, decode: decodeTQ1_0},
	TQ2_0:  {name: "TQ2_0", elements: super, bytes: 66, decode: decodeTQ2_0},
	MXFP4:  {name: "MXFP4", elements: 32, bytes: 17, decode: decodeMXFP4},
	NVFP4:  {name: "NVFP4", elements: 64, bytes: 36, decode: decodeNVFP4},
	Q1_0:   {name: "Q1_0", elements: 128, bytes: 18, decode: decodeQ1_0},
	Q2_0:   {name: "Q2_0", elements: 64, bytes: 18, decode: decodeQ2_0},
	PQ2_0:  {name: "PQ2_0", elements: 128, bytes: 34, decode: decodeQ2_0},
}

// super is the number of elements in a block of the K, IQ and TQ types (QK_K).
const super = 256

// undecoded names the numbers that cannot be imported: ggml's types that were removed or that only hold activations,
// and one of PrismML's fork.
var undecoded = map[Type]string{
	4: "Q4_2", 5: "Q4_3", 9: "Q8_1", 15: "Q8_K", 31: "Q4_0_4_4", 32: "Q4_0_4_8", 33: "Q4_0_8_8", 36: "IQ4_NL_4_4",
	37: "IQ4_NL_4_8", 38: "IQ4_NL_8_8", 143: "PTQ1_0",
}

// Check returns an error wrapping ErrType that names t if t cannot be decoded.
func (t Type) Check() error {
	if _, ok := layouts[t]; ok {
		return nil
	}
	return fmt.Errorf("%w: %v", ErrType, t)
}

// String returns ggml's name of the type, such as "Q4_K".
func (t Type) String() string {
	if l, ok := layouts[t]; ok {
		return l.name
	}
	if name, ok := undecoded[t]; ok {
		return name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// ParseType returns the type of a name, in any case.
func ParseType(name string) (Type, error) {
	for t, l := range layouts {
		if strings.EqualFold(l.name, name) {
			return t, nil
		}
	}
	return 0, fmt.Errorf("%w: %q", ErrType, name)
}

// DType returns the element type of a plain type, or "" for types with blocks.
func (t Type) DType() quantize.DType { return layouts[t].dtype }

// Block returns the elements and the bytes of a block: 1 and the element's size for a plain type, 0 and 0 for a type
// that cannot be decoded.
func (t Type) Block() (elements, bytes int) {
	l := layouts[t]
	return l.elements, l.bytes
}

// Decode writes the values of the blocks in src to dst. The slices hold the same whole number of blocks.
func (t Type) Decode(dst []float32, src []byte) error {
	l, ok := layouts[t]
	if !ok || l.decode == nil {
		return fmt.Errorf("%w: %v has no blocks to decode", ErrType, t)
	}
	n := len(src) / l.bytes
	if len(src) != n*l.bytes || len(dst) != n*l.elements {
		return fmt.Errorf("%w: %d bytes of %v and %d elements", ErrLength, len(src), t, len(dst))
	}
	for ; n > 0; n-- {
		l.decode(dst[:l.elements:l.elements], src[:l.bytes:l.bytes])
		dst, src = dst[l.elements:], src[l.bytes:]
	}
	return nil
}
