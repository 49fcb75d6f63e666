package plan

import (
	"fmt"
	"path"
	"strings"

	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/safetensors"
)

// chooser chooses the types of a model's tensors, and records which rules matched.
type chooser struct {
	rules  precision.Rules
	base   quantize.Type
	ask    recipe.Precision
	prefix string // of the names in the image
	used   map[int]bool
}

func newChooser(rules precision.Rules, p recipe.Precision, base quantize.Type) *chooser {
	return &chooser{rules: rules, base: base, ask: p, used: map[int]bool{}}
}

// choose returns a tensor's type, or 0 for the source's type, and the rule that decided.
func (c *chooser) choose(s table.Spec, source safetensors.DType) (quantize.Type, string, error) {
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

func (c *chooser) want(s table.Spec, source safetensors.DType) (quantize.Type, string, error) {
	name := c.prefix + s.Name
	for i := len(c.ask.Rules) - 1; i >= 0; i-- {
		r := c.ask.Rules[i]
		if ok, _ := path.Match(r.Match, name); !ok {
			continue
		}
		why := c.obstacle(s, r.Type, source)
		switch {
		case why == "":
			c.used[i] = true
			return r.Type, userRule + r.String(), nil
		case r.Match == name:
			return 0, "", fmt.Errorf("quantization rule %s: %s", r, why)
		}
	}
	return c.byArchitecture(s, source)
}

// obstacle returns the reason that a tensor cannot have a type, or "".
func (c *chooser) obstacle(s table.Spec, t quantize.Type, source safetensors.DType) string {
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

// sameBits reports whether codes that a source has are as good as those of the type that the architecture's rules
// promote a tensor to: affine ones with as many bits, in groups of another size. Quantizing them again would only add
// an error.
func (c *chooser) sameBits(want, have quantize.Type, rule string) bool {
	return want != 0 && have != 0 && want != c.base && !strings.HasPrefix(rule, userRule) &&
		want.Mode() == "affine" && have.Mode() == "affine" && want.Bits() == have.Bits()
}

// userRule begins the reason of a type that a user's rule decided.
const userRule = "rule "

// unused lists the rules that matched no tensor.
func (c *chooser) unused() []string {
	var out []string
	for i, r := range c.ask.Rules {
		if !c.used[i] {
			out = append(out, r.String())
		}
	}
	return out
}

// kept is the rule of a tensor that no conversion was requested for.
const kept = "kept"

func (c *chooser) byArchitecture(s table.Spec, source safetensors.DType) (quantize.Type, string, error) {
	if c.base == 0 || !isFloat(source) {
		return 0, kept, nil
	}
	t, rule := c.rules.Precision(s.Name, s.Shape, c.base)
	if c.ask.Uniform && t != 0 && t != c.base && c.obstacle(s, c.base, source) == "" {
		return c.base, "uniform", nil
	}
	return t, rule, nil
}
