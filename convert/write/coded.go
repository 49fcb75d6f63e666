package write

import (
	"errors"

	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/quantize"
)

// openCoded returns readers of a tensor's sources, some of which are quantized.
func openCoded(list []plan.Source) []packed.Elements {
	var out []packed.Elements
	for _, s := range list {
		out = append(out, s.Tensor.Elements())
	}
	return out
}

// readFloats reads a batch's elements into buf, as float32.
func (c coder) readFloats(buf []byte, batch []sourceRange) error {
	at := int64(0)
	for _, s := range batch {
		if err := c.coded[s.source].Floats(buf[4*at:4*(at+s.count)], s.begin, s.count); err != nil {
			return shift(err, at)
		}
		at += s.count
	}
	return nil
}

// readCodes reads a batch's codes into a slab.
func (c coder) readCodes(slab []byte, batch []sourceRange) (quantize.Blocks, error) {
	out, _ := c.blocks(slab, countOf(batch), c.coding.Source)
	size, group := c.coding.Target.GroupSizes(c.coding.Source), int64(c.coding.Target.Group())
	at := int64(0)
	for _, s := range batch {
		g, n := at/group, s.count/group
		part := func(b []byte, one int) []byte { return b[g*int64(one) : (g+n)*int64(one)] }
		dst := quantize.Blocks{
			Packed: part(out.Packed, size.Packed),
			Scales: part(out.Scales, size.Scales), Biases: part(out.Biases, size.Biases),
		}
		if err := c.coded[s.source].Codes(dst, s.begin, s.count); err != nil {
			return out, shift(err, at)
		}
		at += s.count
	}
	return out, nil
}

// shift adds an offset to the element index of an error.
func shift(err error, by int64) error {
	var at *quantize.ElementError
	if !errors.As(err, &at) {
		return err
	}
	return &quantize.ElementError{Index: at.Index + by, Value: at.Value, Err: at.Err}
}
