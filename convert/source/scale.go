package source

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// Scaling multiplies a matrix by factors of its rows and of its columns; nil is 1. A vector is one row.
type Scaling struct{ Rows, Columns []float32 }

// Scale replaces tensors by scaled ones. Products are computed in float32 and, unless another type is requested,
// rounded once to the tensor's type.
func (src *Source) Scale(by map[string]Scaling) error {
	for name, s := range by {
		at := slices.IndexFunc(src.tensors, func(w Tensor) bool { return w.Name == name })
		if at < 0 {
			return fmt.Errorf("%s: tensor %s: %w: not found, but it is scaled", src.From, name, ErrSource)
		}
		w, err := scaledWeight(src.tensors[at], s)
		if err != nil {
			return fmt.Errorf("%s: tensor %s: %w: %w", src.From, name, ErrSource, err)
		}
		src.tensors[at] = w
	}
	return nil
}

const scaledFormat = " scaled"

func scaledWeight(w Tensor, s Scaling) (Tensor, error) {
	rows, width := int64(1), w.Shape[len(w.Shape)-1]
	if len(w.Shape) == 2 {
		rows = w.Shape[0]
	}
	float := w.DType == safetensors.F32 || w.DType == safetensors.F16 || w.DType == safetensors.BF16
	switch {
	case w.Coded != nil || w.Quant != 0 || !float || len(w.Shape) > 2:
		return w, fmt.Errorf("only vectors and matrices of F32, F16 and BF16 can be scaled")
	case s.Rows != nil && int64(len(s.Rows)) != rows, s.Columns != nil && int64(len(s.Columns)) != width:
		return w, fmt.Errorf("it is %v, but has factors of %d rows and %d columns", w.Shape, len(s.Rows), len(s.Columns))
	}
	coded := packed.Weight{
		Name: w.Name, Shape: w.Shape, DType: w.DType, Why: "its channels are scaled", Plain: true,
		Format: strings.ToLower(string(w.DType)) + scaledFormat, Read: scaled{w.Elements(), s, width},
		Parts: []safetensors.Source{{Tensor: safetensors.Tensor{Name: w.Name, DType: w.DType, Shape: w.Shape}}},
	}
	if at, ok := w.place.(shard); ok {
		coded.Parts[0] = at.tensor
	}
	return Tensor{
		Name: w.Name, DType: w.DType, Shape: w.Shape, File: w.File, Path: w.Path, Coded: &coded, parts: []Tensor{w},
	}, nil
}

// scaled reads a scaled tensor.
type scaled struct {
	base packed.Elements
	Scaling
	width int64
}

// Floats implements packed.Elements.
func (s scaled) Floats(dst []byte, begin, count int64) error {
	if err := s.base.Floats(dst, begin, count); err != nil {
		return err
	}
	for i := range count {
		v := math.Float32frombits(binary.LittleEndian.Uint32(dst[4*i:]))
		if s.Rows != nil {
			v *= s.Rows[(begin+i)/s.width]
		}
		if s.Columns != nil {
			v *= s.Columns[(begin+i)%s.width]
		}
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
	return nil
}

// Codes implements packed.Elements.
func (s scaled) Codes(quantize.Blocks, int64, int64) error {
	return fmt.Errorf("%w: a scaled tensor has no codes", ErrSource)
}
