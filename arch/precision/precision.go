// Package precision has the rules that choose each tensor's type when a model is quantized.
package precision

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
)

// Rules is a model's list of precision rules: they choose each tensor's type for a requested base type. The first match
// wins.
type Rules struct {
	Layers int            // number of layers in the model, for MoreBits
	Set    recipe.RuleSet // "" means DefaultRuleSet
	List   []Rule
}

// Rule is one precision rule. A zero condition always holds.
type Rule struct {
	Name   string   // the reason shown to users
	Has    []string // the tensor's name contains one of these
	Ends   []string // the tensor's name ends in one of these
	Not    []string // the tensor's name ends in none of these
	Kind   Kind
	Shape  ShapeClass
	Of     Family // of the base type
	Layers LayerSet
	Set    recipe.RuleSet // of the rule sets, this one only
	To     []Target       // types to try; the first that suits the tensor's shape wins
}

// Kind distinguishes expert weights from others, by name.
type Kind string

// Kinds of weights.
const (
	Expert    Kind = "expert"
	NotExpert Kind = "not expert"
)

// expertNames identify expert weights. Shared experts count as experts, as in the published rules.
var expertNames = []string{".experts.", ".switch_mlp.", ".shared_experts."}

// ShapeClass is a class of shapes.
type ShapeClass string

// Classes of shapes.
const (
	NoMatrix  ShapeClass = "no matrix" // neither a matrix nor an expert's stack of matrices
	Small     ShapeClass = "small"     // fewer than 1024 elements
	Unaligned ShapeClass = "unaligned" // the last dimension is not a multiple of the base type's group size
)

const smallTensor = 1024

// Family is a set of types.
type Family string

// Families of types.
const (
	Casts     Family = "casts"
	Quantized Family = "all but casts"
	Narrow    Family = "up to 4 bits"
	Affine    Family = "affine, up to 4 bits"
	FP4       Family = "fp4" // mxfp4, nvfp4
)

// LayerSet is a set of layers.
type LayerSet string

// MoreBits are the layers where quantization errors matter most: the first and the last eighth, and every third one in
// between.
const MoreBits LayerSet = "more bits"

// Target is a type that a rule chooses.
type Target string

// Targets of rules.
const (
	Source   Target = "source"    // the tensor keeps its type
	Base     Target = "base"      // the base type
	EightBit Target = "eight bit" // the 8-bit type of the base type's family: int8 with the same group size, or mxfp8
	Int8     Target = "int8"      // int8, with the group size of an affine base type
)

// Precision returns the type of a tensor for a base type, and the name of the rule that decided. Type 0 keeps the
// tensor's type.
func (r Rules) Precision(name string, shape []int64, base quantize.Type) (quantize.Type, string) {
	if base == 0 {
		return 0, "kept"
	}
	for _, rule := range r.List {
		if rule.fits(name, shape, base, r) {
			return rule.choose(shape, base)
		}
	}
	return 0, "no rule"
}

// AsDraft returns the rules for a draft model. Its output head gets the base type: the head only affects which tokens
// are proposed, not the generated text.
func (r Rules) AsDraft() Rules {
	head := Rule{
		Name: "head of a draft", Of: Quantized, To: []Target{Base, Source},
		Ends: []string{"embed_tokens.weight", table.HeadName},
	}
	r.List = append([]Rule{head}, r.List...)
	return r
}

func (r Rule) fits(name string, shape []int64, base quantize.Type, all Rules) bool {
	in := func(part string) bool { return strings.Contains(name, part) }
	ends := func(end string) bool { return strings.HasSuffix(name, end) }
	expert := slices.ContainsFunc(expertNames, in)
	return (r.Has == nil || slices.ContainsFunc(r.Has, in)) &&
		(r.Ends == nil || slices.ContainsFunc(r.Ends, ends)) &&
		!slices.ContainsFunc(r.Not, ends) &&
		(r.Kind == "" || (r.Kind == Expert) == expert) &&
		r.Shape.has(shape, expert, base) &&
		r.Of.has(base) &&
		(r.Layers == "" || moreBits(layerOf(name), all.Layers)) &&
		(r.Set == "" || r.Set == cmp.Or(all.Set, recipe.DefaultRuleSet))
}

func (s ShapeClass) has(shape []int64, expert bool, base quantize.Type) bool {
	switch s {
	case NoMatrix:
		return len(shape) != 2 && (len(shape) != 3 || !expert)
	case Small:
		return table.Elements(shape) < smallTensor
	case Unaligned:
		return !aligned(shape, base)
	}
	return true
}

func (f Family) has(t quantize.Type) bool {
	switch f {
	case Casts:
		return t.IsCast()
	case Quantized:
		return !t.IsCast()
	case Affine:
		return t.Mode() == "affine" && t.Bits() <= 4
	case FP4:
		return t == quantize.MXFP4 || t == quantize.NVFP4
	case Narrow:
		return !t.IsCast() && t.Bits() <= 4
	}
	return true
}

func (r Rule) choose(shape []int64, base quantize.Type) (quantize.Type, string) {
	why := r.Name
	for _, target := range r.To {
		t := base
		switch target {
		case Source:
			return 0, why
		case EightBit:
			t = eightBit(base)
		case Int8:
			if t = quantize.Int8; base.Mode() == "affine" {
				t = t.WithGroup(base.Group())
			}
		}
		if aligned(shape, t) {
			return t, why
		}
		why = fmt.Sprintf("%s (%s does not fit the shape)", r.Name, t)
	}
	return 0, why
}

// eightBit returns the 8-bit type of a type's family.
func eightBit(t quantize.Type) quantize.Type {
	switch {
	case t.IsCast():
		return t
	case t.Mode() == "affine":
		return quantize.Int8.WithGroup(t.Group())
	}
	return quantize.MXFP8
}

// aligned reports whether a row of the shape is a whole number of t's groups.
func aligned(shape []int64, t quantize.Type) bool {
	return t.IsCast() || len(shape) > 1 && shape[len(shape)-1]%int64(t.Group()) == 0
}

// layerOf returns the layer number in a tensor's name, or -1.
func layerOf(name string) int {
	_, rest, ok := strings.Cut(name, "layers.")
	if !ok {
		return -1
	}
	number, _, _ := strings.Cut(rest, ".")
	i, err := strconv.Atoi(number)
	if err != nil {
		return -1
	}
	return i
}

func moreBits(layer, layers int) bool {
	if layer < 0 {
		return false
	}
	return layer < layers/8 || layer >= 7*layers/8 || (layer-layers/8)%3 == 2
}

// generic are the precision rules for models without rules of their own. Small and sensitive tensors keep their type.
// The output head and the projections whose errors reach the residual stream directly get 8 bits. All other matrices
// get the base type.
var generic = []Rule{
	{
		Name: "decides in float32", Of: Casts, To: []Target{Source},
		Ends: []string{".A_log", ".dt_bias", ".e_score_correction_bias"},
	},
	{Name: "cast", Of: Casts, To: []Target{Base}},

	{Name: "audio", Kind: NotExpert, Has: []string{"audio_tower", "embed_audio"}, To: []Target{Source}},
	{Name: "embedding", Set: recipe.RuleSet2, Of: Quantized, Ends: table.EmbeddingNames, To: []Target{Int8, Base, Source}},
	{Name: "embedding", Kind: NotExpert, Has: []string{"embed"}, To: []Target{Source}},
	{Name: "norm", Kind: NotExpert, Has: []string{"norm", "ln_", "layernorm"}, To: []Target{Source}},
	{Name: "bias", Ends: []string{".bias"}, To: []Target{Source}},
	{Name: "no weight", Kind: NotExpert, Not: []string{".weight"}, To: []Target{Source}},
	{Name: "no matrix", Shape: NoMatrix, To: []Target{Source}},
	{Name: "small", Shape: Small, To: []Target{Source}},
	{
		Name: "routing", To: []Target{Source},
		Ends: []string{
			".mlp.gate.weight", ".mixer.gate.weight", ".block_sparse_moe.gate.weight", ".shared_expert_gate.weight",
			".router.proj.weight", ".mlp.router.weight", ".mlp.router.classifier.weight",
		},
	},
	{Name: "output head", Ends: []string{table.HeadName}, To: []Target{EightBit, Source}},
	{Name: "vision", Has: []string{"vision", "visual"}, To: []Target{Source}},
	{Name: "rows are not whole groups", Shape: Unaligned, To: []Target{Source}},
	{Name: "values, keys, down projection", Of: Affine, Has: Sensitive, To: []Target{EightBit, Base}},
	{Name: "values, keys, down projection", Of: FP4, Kind: NotExpert, Has: Sensitive, To: []Target{EightBit, Base}},
	{Name: "base", To: []Target{Base}},
}

// Sensitive identifies the projections that get more bits.
var Sensitive = []string{".v_proj", ".k_proj", "down_proj", ".mlp.c_proj", ".mlp.fc2"}

func Generic(layers int, first ...Rule) Rules {
	return Rules{Layers: layers, List: slices.Concat(first, generic)}
}
