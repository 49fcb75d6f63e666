package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/quantize"
)

// planCoded plans a tensor with quantized sources. It keeps their codes if a format of package quantize represents them
// exactly and no other type was requested. Otherwise the target is made from the dequantized elements in one pass.
func planCoded(t Tensor, c *chooser) (Tensor, error) {
	if t.Match.Transposed {
		return t, fmt.Errorf("tensor %s: %w: it is stored transposed and quantized, which is not supported; "+
			"use the unquantized checkpoint", t.Name, source.ErrSource)
	}
	first := t.Sources[slices.IndexFunc(t.Sources, func(s Source) bool { return s.Tensor.Coded != nil })]
	t.Format = first.Format
	want, rule, err := c.want(t.Match.Spec, t.Source)
	if err != nil {
		return t, err
	}
	if t.Match.Make == table.Add {
		want, rule = quantize.ToF32, "what is added to it is exact in float32"
		t.Transform = []string{fmt.Sprintf("add %v", t.Match.Add)}
	}
	same, why := t.sameCodes()
	if c.sameBits(want, same, rule) {
		want = same
	}
	switch {
	case want == 0 && same == 0:
		if err := t.checkDequantize(why); err != nil {
			return t, err
		}
		t.Coding.Target = quantize.CastTo(quantize.DType(t.Source))
		t.dequantized = first.Tensor.Coded.Global != 0 || first.Tensor.Coded.Several
		t.Rule = rule + " in " + strings.ToLower(string(t.Source)) + ": " + why
	case want == 0 || want == same:
		t.Coding.Target, t.Rule = same, rule
		return t, t.keepCodes()
	default:
		t.Coding.Target, t.Rule = want, rule+", from "+first.Format
		t.requantized = !want.IsCast() && !first.Tensor.Coded.Plain
	}
	coding, err := floatsCoding(t.Name, t.Coding.Target, t.Source, t.Shape)
	if err != nil {
		return t, source.InTensor(t.Name, err)
	}
	t.setCoding(coding)
	return t, nil
}

// sameCodes returns the format that represents the codes of all sources, or 0 and the reason.
func (t Tensor) sameCodes() (quantize.Type, string) {
	var of quantize.Type
	for i, s := range t.Sources {
		w := s.Tensor.Coded
		switch {
		case w == nil:
			return 0, fmt.Sprintf("a part of the tensor, %s, is not quantized", s.Name)
		case w.Type == 0:
			return 0, w.Why
		case i == 0:
			of = w.Type
		case w.Type != of:
			return 0, fmt.Sprintf("another part of the tensor, %s, is %s", s.Name, s.Format)
		case w.Scales != t.Sources[0].Tensor.Coded.Scales:
			return 0, fmt.Sprintf("another part of the tensor, %s, has scales of another type", s.Name)
		case w.Global != t.Sources[0].Tensor.Coded.Global:
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
	name := t.Match.Spec.Name
	return len(t.Shape) == 2 && strings.HasSuffix(name, ".weight") &&
		!strings.HasSuffix(name, "embed_tokens.weight") && !strings.HasSuffix(name, ".kv_b_proj.weight")
}

// checkDequantize returns an error for sources that must only be dequantized on request. Those with a scale of the
// whole tensor are dequantized where it cannot be kept: they are experts, or embeddings.
func (t Tensor) checkDequantize(why string) error {
	for _, s := range t.Sources {
		if w := s.Tensor.Coded; w != nil && !w.Plain && w.Global == 0 {
			return fmt.Errorf("%s: tensor %s: %w: it is %s, and %s; "+
				"ask for a type with --quantize or --quantize-rule, or use the unquantized checkpoint",
				s.Tensor.Path, s.Tensor.Parts()[0].Name, source.ErrSource, s.Format, why)
		}
	}
	return nil
}

// keepCodes sets the coding of a blob that holds the sources' codes unchanged.
func (t *Tensor) keepCodes() error {
	first := t.Sources[0].Tensor.Coded
	c := Coding{Target: t.Coding.Target, Source: quantize.DType(t.Source), Keep: true, Global: first.Global}
	if first.Scales != "" {
		c.Source = quantize.DType(first.Scales)
	}
	parts, err := c.Target.Parts(c.Source, t.Shape)
	if err != nil {
		return source.InTensor(t.Name, err)
	}
	q := blob.Quantized{Type: c.Target, Parts: parts, Global: c.Global, Rule: first.Rule}
	for _, s := range t.Sources {
		if s.Tensor.Coded.Rule != q.Rule {
			q.Rule = ""
		}
	}
	if err := c.place(q.Layout(t.Name)); err != nil {
		return source.InTensor(t.Name, err)
	}
	t.setCoding(c)
	return nil
}
