package blob

import (
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// Array is one key of a blob.
type Array struct {
	Name  string            `json:"name"`
	DType safetensors.DType `json:"dtype"`
	Shape []int64           `json:"shape"`
	Bytes int64             `json:"bytes"`
}

// Layout describes the positions of a new blob's contents.
type Layout struct {
	Arrays   []Array // in order
	Offsets  []int64 // of the arrays, in the blob
	Metadata map[string]string
	start    int64 // of the data, after the header
}

// PlainLayout returns the layout of a tensor that is stored as it is.
func PlainLayout(name string, dtype safetensors.DType, shape []int64) (Layout, error) {
	l := Layout{Arrays: []Array{{Name: name, DType: dtype, Shape: shape}}}
	return l, l.place()
}

// Quantized describes a tensor that is stored as a type of package quantize: a quantized type, or a cast.
type Quantized struct {
	Type   quantize.Type
	Parts  quantize.Parts
	Global float32 // scale of the whole tensor; 0 = none, without an array
	Rule   string  // version of the arithmetic; "" = unknown
}

// Layout returns the blob's layout.
func (q Quantized) Layout(name string) (Layout, error) {
	l := Layout{Metadata: metadata(q.Type, q.Rule)}
	for _, p := range []struct {
		name string
		part quantize.Part
	}{{name, q.Parts.Packed}, {name + ScaleSuffix, q.Parts.Scales}, {name + BiasSuffix, q.Parts.Biases}} {
		if p.part.DType != "" {
			l.Arrays = append(l.Arrays, Array{Name: p.name, DType: safetensors.DType(p.part.DType), Shape: p.part.Shape})
		}
	}
	if q.Global != 0 {
		l.Arrays = append(l.Arrays, Array{Name: name + GlobalSuffix, DType: safetensors.F32, Shape: []int64{}})
	}
	return l, l.place()
}

// place computes the arrays' sizes and offsets.
func (l *Layout) place() error {
	header, placed, err := l.encode()
	if err != nil {
		return err
	}
	l.start = int64(len(header))
	for i, p := range placed {
		l.Arrays[i].Bytes = p.Size()
		l.Offsets = append(l.Offsets, l.start+p.Begin)
	}
	return nil
}

// Header encodes the part of the blob before the data. It is not stored in the layout, because padding makes it 16 KiB.
func (l Layout) Header() ([]byte, error) {
	header, _, err := l.encode()
	return header, err
}

func (l Layout) encode() ([]byte, []safetensors.Tensor, error) {
	var list []safetensors.Tensor
	for _, a := range l.Arrays {
		list = append(list, safetensors.Tensor{Name: a.Name, DType: a.DType, Shape: a.Shape})
	}
	return safetensors.EncodeHeader(list, l.Metadata)
}

// Bytes returns the size of the arrays.
func (l Layout) Bytes() int64 {
	var n int64
	for _, a := range l.Arrays {
		n += a.Bytes
	}
	return n
}

// Size returns the size of the blob.
func (l Layout) Size() int64 { return l.start + l.Bytes() }
