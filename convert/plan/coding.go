package plan

import (
	"strings"

	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// Coding says how the elements of a tensor's sources become the arrays of its blob.
type Coding struct {
	Layout blob.Layout
	Target quantize.Type  // 0 = the source's
	Source quantize.DType // element type of the source; "" if the elements are only copied
	Middle quantize.DType // type that elements are cast to before they are quantized; "" = none
	Width  int64          // bytes per element of the source

	// For quantized sources, whose elements package packed reads:
	Keep   bool           // as codes of Target
	Floats bool           // as float32; Source is then F32
	Stored quantize.DType // type of scales and biases computed in float32; "" = unchanged
	Global float32        // scale of the whole tensor; 0 = none

	Calibrated *Calibrated // how statistics choose the codes; nil = they do not
}

// newCoding returns the coding of a plain tensor.
func newCoding(
	name string, target quantize.Type, from safetensors.DType, shape []int64, global float32,
) (Coding, error) {
	c := Coding{Target: target, Width: int64(from.Bits() / 8), Source: quantize.DType(from), Global: global}
	if target == 0 {
		c.Source = ""
		return c, c.place(blob.PlainLayout(name, from, shape))
	}
	if !target.IsCast() && target.GroupSizes(c.Source) == (quantize.Sizes{}) {
		c.Middle = quantize.F32
	}
	parts, err := target.Parts(c.Coded(), shape)
	if err != nil {
		return c, err
	}
	q := blob.Quantized{Type: target, Parts: parts, Global: global, Rule: target.Rule()}
	return c, c.place(q.Layout(name))
}

// floatsCoding returns the coding of a tensor made from dequantized elements, which are read as float32. Scales and
// biases get the source's element type, as if the source had never been quantized.
func floatsCoding(name string, target quantize.Type, dtype safetensors.DType, shape []int64) (Coding, error) {
	c := Coding{Target: target, Source: quantize.F32, Width: 4, Floats: true}
	parts, err := target.Parts(quantize.DType(dtype), shape)
	if err != nil {
		return c, err
	}
	if parts.Biases.DType != "" && dtype != safetensors.F32 {
		c.Stored = quantize.DType(dtype)
	}
	return c, c.place(blob.Quantized{Type: target, Parts: parts, Rule: target.Rule()}.Layout(name))
}

func (c *Coding) place(l blob.Layout, err error) error {
	c.Layout = l
	return err
}

// Coded returns the type of the elements that the last step quantizes or casts.
func (c Coding) Coded() quantize.DType {
	if c.Middle != "" {
		return c.Middle
	}
	return c.Source
}

// steps lists the steps to a type, for users.
func (c Coding) steps(name string) []string {
	if c.Keep {
		return []string{"keep codes"}
	}
	var steps []string
	if c.Floats {
		steps = append(steps, "dequantize")
	}
	if c.Middle != "" {
		steps = append(steps, "cast to "+strings.ToLower(string(c.Middle)))
	}
	if c.Target.IsCast() {
		return append(steps, "cast to "+name)
	}
	return append(steps, "quantize to "+name)
}
