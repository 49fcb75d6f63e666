package convert

import (
	"fmt"
	"path"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// chooser chooses the types of a model's tensors, and records which rules matched.
type chooser struct {
	rules arch.Rules
	base  quantize.Type
	Precision
	prefix string // of the names in the image
	used   map[int]bool
}

func newChooser(rules arch.Rules, p Precision, base quantize.Type) *chooser {
	return &chooser{rules: rules, base: base, Precision: p, used: map[int]bool{}}
}

// choose returns a tensor's type, or 0 for the source's type, and the rule that decided.
func (c *chooser) choose(s arch.Spec, source safetensors.DType) (quantize.Type, string, error) {
	t, rule, err := c.want(s, source)
	if err != nil {
		return 0, "", err
	}
	if t.IsCast() && string(t.DType()) == string(source) {
		t = 0
	}
	if t == 0 && source == safetensors.F64 { // GPUs do not support F64
		return quantize.ToF32, "F64 is kept as F32", nil
	}
	return t, rule, nil
}

func (c *chooser) want(s arch.Spec, source safetensors.DType) (quantize.Type, string, error) {
	name := c.prefix + s.Name
	for i := len(c.Rules) - 1; i >= 0; i-- {
		r := c.Rules[i]
		if ok, _ := path.Match(r.Match, name); !ok {
			continue
		}
		why := c.obstacle(s, r.Type, source)
		switch {
		case why == "":
			c.used[i] = true
			return r.Type, "rule " + r.String(), nil
		case r.Match == name:
			return 0, "", fmt.Errorf("quantization rule %s: %s", r, why)
		}
	}
	return c.byArchitecture(s, source)
}

// obstacle returns the reason that a tensor cannot have a type, or "".
func (c *chooser) obstacle(s arch.Spec, t quantize.Type, source safetensors.DType) string {
	if t == 0 {
		return ""
	}
	if !isFloat(source) {
		return fmt.Sprintf("the tensor is of type %s, which is kept", source)
	}
	if t.IsCast() {
		return ""
	}
	if _, err := t.Parts(quantize.F32, s.Shape); err != nil {
		return err.Error()
	}
	return ""
}

func isFloat(d safetensors.DType) bool {
	return d == safetensors.BF16 || d == safetensors.F16 || d == safetensors.F32 || d == safetensors.F64
}

// unused lists the rules that matched no tensor.
func (c *chooser) unused() []string {
	var out []string
	for i, r := range c.Rules {
		if !c.used[i] {
			out = append(out, r.String())
		}
	}
	return out
}

// kept is the rule of a tensor that no conversion was requested for.
const kept = "kept"

func (c *chooser) byArchitecture(s arch.Spec, source safetensors.DType) (quantize.Type, string, error) {
	if c.base == 0 || !isFloat(source) {
		return 0, kept, nil
	}
	t, rule := c.rules.Precision(s.Name, s.Shape, c.base)
	if c.Uniform && t != 0 && t != c.base && c.obstacle(s, c.base, source) == "" {
		return c.base, "uniform", nil
	}
	return t, rule, nil
}
