package convert

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/convert/sources"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// planCoded plans a tensor with quantized sources. It keeps their codes if a format of package quantize represents them
// exactly and no other type was requested. Otherwise the target is made from the dequantized elements in one pass.
func (inv *Inventory) planCoded(t Tensor, c *chooser) (Tensor, error) {
	first := t.Sources[slices.IndexFunc(t.Sources, func(s Source) bool { return s.weight.coded != nil })]
	t.Format = first.Format
	want, rule, err := c.want(t.match.Spec, t.Source)
	if err != nil {
		return t, err
	}
	if t.match.Make == arch.Add {
		want, rule = quantize.ToF32, "what is added to it is exact in float32"
		t.Transform = []string{fmt.Sprintf("add %v", t.match.Add)}
	}
	same, why := t.sameCodes()
	switch {
	case want == 0 && same == 0:
		if err := t.checkDequantize(why); err != nil {
			return t, err
		}
		t.target, t.Rule = castTo[quantize.DType(t.Source)], rule+" in "+strings.ToLower(string(t.Source))+": "+why
	case want == 0 || want == same:
		t.target, t.Rule = same, rule
		return t, t.keepCodes()
	default:
		t.target, t.Rule = want, rule+", from "+first.Format
		t.requantized = !want.IsCast() && !first.weight.coded.Plain
	}
	lay, err := floatsLayout(t.Name, t.target, t.Source, t.Shape)
	if err != nil {
		return t, wrapTensor(t.Name, err)
	}
	return t, t.setLayout(lay)
}

// sameCodes returns the format that represents the codes of all sources, or 0 and the reason.
func (t Tensor) sameCodes() (quantize.Type, string) {
	var of quantize.Type
	for i, s := range t.Sources {
		w := s.weight.coded
		switch {
		case w == nil:
			return 0, fmt.Sprintf("a part of the tensor, %s, is not quantized", s.Name)
		case w.Type == 0:
			return 0, w.Why
		case i == 0:
			of = w.Type
		case w.Type != of:
			return 0, fmt.Sprintf("another part of the tensor, %s, is %s", s.Name, s.Format)
		case w.Scales != t.Sources[0].weight.coded.Scales:
			return 0, fmt.Sprintf("another part of the tensor, %s, has scales of another type", s.Name)
		case w.Global != t.Sources[0].weight.coded.Global:
			return 0, fmt.Sprintf("another part of the tensor, %s, has another scale of the whole", s.Name)
		}
		if w.Global != 0 && !t.linear() {
			return 0, "only the weights of linear layers can have a scale of the whole tensor"
		}
		if s.Shape[len(s.Shape)-1] != t.Shape[len(t.Shape)-1] {
			return 0, "its rows become others"
		}
	}
	return of, ""
}

// linear reports whether the tensor is the weight of a linear layer, which the engine multiplies as a whole.
func (t Tensor) linear() bool {
	name := t.match.Spec.Name
	return len(t.Shape) == 2 && strings.HasSuffix(name, ".weight") &&
		!strings.HasSuffix(name, "embed_tokens.weight") && !strings.HasSuffix(name, ".kv_b_proj.weight")
}

// checkDequantize returns an error for sources that must only be dequantized on request.
func (t Tensor) checkDequantize(why string) error {
	for _, s := range t.Sources {
		if w := s.weight.coded; w != nil && !w.Plain {
			return fmt.Errorf("%s: tensor %s: %w: it is %s, and %s; "+
				"ask for a type with --quantize or --quantize-rule, or use the unquantized checkpoint",
				s.weight.path, s.weight.parts[0].Name, ErrSource, s.Format, why)
		}
	}
	return nil
}

// keepCodes sets the layout of a blob that holds the sources' codes unchanged.
func (t *Tensor) keepCodes() error {
	first := t.Sources[0].weight.coded
	l := layout{target: t.target, source: quantize.DType(t.Source), keep: true, global: first.Global}
	if first.Scales != "" {
		l.source = quantize.DType(first.Scales)
	}
	parts, err := t.target.Parts(l.source, t.Shape)
	if err != nil {
		return wrapTensor(t.Name, err)
	}
	l.list(t.Name, parts)
	rule := first.Rule
	for _, s := range t.Sources {
		if s.weight.coded.Rule != rule {
			rule = ""
		}
	}
	l.quantized(rule)
	if err := l.finish(); err != nil {
		return wrapTensor(t.Name, err)
	}
	return t.setLayout(l)
}

// floatsLayout returns the layout of a tensor made from dequantized elements, which are read as float32. Scales and
// biases get the source's element type, as if the source had never been quantized.
func floatsLayout(name string, target quantize.Type, dtype safetensors.DType, shape []int64) (layout, error) {
	l := layout{target: target, source: quantize.F32, width: 4, floats: true}
	parts, err := target.Parts(quantize.DType(dtype), shape)
	if err != nil {
		return l, err
	}
	if parts.Biases.DType != "" && dtype != safetensors.F32 {
		l.stored = quantize.DType(dtype)
	}
	l.list(name, parts)
	l.quantized(target.Rule())
	return l, l.finish()
}

// openCoded returns readers of a tensor's sources, some of which are quantized.
func openCoded(list []Source) []sources.Elements {
	var out []sources.Elements
	for _, s := range list {
		if w := s.weight.coded; w != nil {
			out = append(out, w.Read)
		} else {
			out = append(out, sources.PlainElements(s.weight.from))
		}
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
	out, _ := c.blocks(slab, countOf(batch), c.layout.source)
	size, group := c.layout.target.GroupSizes(c.layout.source), int64(c.layout.target.Group())
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
