package blob

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// Blob is the header of a blob that should hold the tensor Name.
type Blob struct {
	Name   string
	Header *safetensors.Header
	Arrays map[string]safetensors.Tensor // the tensor's codes, scales and biases, by the suffix of their keys
	Global float32                       // scale of the whole tensor; 0 = none

	global bool   // there is a scale of the whole tensor, possibly an invalid one
	other  string // the first key that is not one of the tensor's
}

// Read reads the header of a blob of the given size.
func Read(r io.ReaderAt, size int64, name string) (*Blob, error) {
	h, err := safetensors.ReadHeader(r, size)
	if err != nil {
		return nil, err
	}
	return newBlob(h, name, func(t safetensors.Tensor) io.Reader {
		return io.NewSectionReader(r, h.DataOffset+t.Begin, t.Size())
	})
}

// Open reads the header of the blob in a file. Errors name the file.
func Open(path, name string) (*Blob, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := newBlob(f.Header(), name, func(t safetensors.Tensor) io.Reader {
		return io.NewSectionReader(f.Reader(t), 0, t.Size())
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

func newBlob(h *safetensors.Header, name string, data func(safetensors.Tensor) io.Reader) (*Blob, error) {
	b := &Blob{Name: name, Header: h, Arrays: map[string]safetensors.Tensor{}}
	for _, t := range h.Tensors {
		suffix, own := strings.CutPrefix(t.Name, name)
		switch {
		case own && suffix == GlobalSuffix:
			var err error
			b.global = true
			if b.Global, err = readGlobal(t, data(t)); err != nil {
				return nil, err
			}
		case own && (suffix == "" || suffix == ScaleSuffix || suffix == BiasSuffix):
			b.Arrays[suffix] = t
		case b.other == "":
			b.other = t.Name
		}
	}
	return b, nil
}

// readGlobal reads the scale of a whole tensor.
func readGlobal(t safetensors.Tensor, r io.Reader) (float32, error) {
	if t.DType != safetensors.F32 || t.NumElements() != 1 {
		return 0, formatError("%s is %s %v, want one F32", t.Name, t.DType, t.Shape)
	}
	var b [4]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, fmt.Errorf("%s: %w", t.Name, err)
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b[:])), nil
}

// Type returns the type that the metadata states; 0 if the tensor is not quantized.
func (b *Blob) Type() (quantize.Type, error) { return typeOf(b.Header.Metadata) }

// Rule returns the version of the arithmetic that made the codes; "" if unknown.
func (b *Blob) Rule() string { return b.Header.Metadata[MetaRule] }

// Elements returns the element type and the shape of the tensor before it was quantized. Formats without floating-point
// scales do not record the element type; it is then BF16.
func (b *Blob) Elements(t quantize.Type) (safetensors.DType, []int64, error) {
	codes := b.Arrays[""]
	if t == 0 {
		return codes.DType, codes.Shape, nil
	}
	shape, err := t.UnpackedShape(codes.Shape)
	if s, ok := b.Arrays[ScaleSuffix]; ok && t.Mode() == "affine" {
		return s.DType, shape, err
	}
	return safetensors.BF16, shape, err
}

// Check verifies that a model can run from the blob, and returns the tensor's type, 0 if it is not quantized. The blob
// must hold the tensor and nothing else, in arrays of the right types and shapes.
func (b *Blob) Check() (quantize.Type, error) {
	if b.other != "" {
		return 0, formatError("it also holds %s: a model runs only from one blob per tensor", b.other)
	}
	if _, ok := b.Arrays[""]; !ok {
		return 0, formatError("it does not hold the tensor")
	}
	if g := b.Global; b.global && !(g > 0 && g <= math.MaxFloat32) {
		return 0, formatError("%s is %v, want a positive number", b.Name+GlobalSuffix, g)
	}
	t, err := b.Type()
	switch {
	case err != nil:
		return 0, err
	case t == 0 && (len(b.Arrays) > 1 || b.global):
		return 0, formatError("it holds scales but no %s", MetaType)
	case t == 0:
		return 0, nil
	}
	if err := b.CheckArrays(t); err != nil {
		return 0, err
	}
	if b.Global != 0 && t != quantize.NVFP4 {
		return 0, formatError("it has a scale of the whole tensor, which %s does not use", t)
	}
	return t, nil
}

// CheckArrays verifies that the arrays have the types and shapes of a quantized tensor.
func (b *Blob) CheckArrays(t quantize.Type) error {
	dtype, shape, err := b.Elements(t)
	if err != nil {
		return err
	}
	want, err := t.Parts(quantize.DType(dtype), shape)
	if err != nil {
		return err
	}
	parts := map[string]quantize.Part{"": want.Packed, ScaleSuffix: want.Scales, BiasSuffix: want.Biases}
	for _, suffix := range slices.Sorted(maps.Keys(parts)) {
		part, got := parts[suffix], b.Arrays[suffix]
		if string(got.DType) != string(part.DType) || !slices.Equal(got.Shape, part.Shape) {
			return formatError("%s%s is %s %v, want %s %v", b.Name, suffix, got.DType, got.Shape, part.DType, part.Shape)
		}
	}
	return nil
}
