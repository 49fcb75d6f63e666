package arch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/quantize"
)

// Rules is a model's precision table: what type each tensor gets when the whole is asked for in one. The first rule that
// fits decides.
type Rules struct {
	Layers int // of the model, for MoreBits
	List   []Rule
}

// Rule is one line of a precision table. Conditions that are zero always hold.
type Rule struct {
	Name   string   // what is shown to a user: why the tensor gets its type
	Has    []string // one of these is in the tensor's name
	Ends   []string // the tensor's name ends in one of these
	Not    []string // and in none of these
	Kind   Kind
	Shape  ShapeClass
	Of     Family // of the type that was asked for
	Layers LayerSet
	To     []Target // the first that fits the tensor's shape
}

// Kind tells expert weights, by their name, from others.
type Kind string

// Kinds of weights.
const (
	Expert    Kind = "expert"
	NotExpert Kind = "not expert"
)

// expertNames mark weights of experts. Shared experts are among them, as in the publication of the rules.
var expertNames = []string{".experts.", ".switch_mlp.", ".shared_experts."}

// ShapeClass is a kind of shape.
type ShapeClass string

// Kinds of shapes.
const (
	NoMatrix  ShapeClass = "no matrix" // neither two dimensions nor an expert's three
	Small     ShapeClass = "small"     // less than 1024 elements
	Unaligned ShapeClass = "unaligned" // the last dimension is no multiple of the group that was asked for
)

const smallTensor = 1024

// Family is a kind of types.
type Family string

// Kinds of types.
const (
	Casts     Family = "casts"
	Quantized Family = "all but casts"
	Narrow    Family = "up to 4 bits"
	Affine    Family = "affine, up to 4 bits"
	FP4       Family = "fp4" // mxfp4, nvfp4
)

// LayerSet is a kind of layers.
type LayerSet string

// MoreBits are the first and the last eighth of the layers, and each third one between: where errors weigh most.
const MoreBits LayerSet = "more bits"

// Target is a type that a rule gives.
type Target string

// Targets of rules.
const (
	Source   Target = "source"    // the tensor stays as it is
	Base     Target = "base"      // what was asked for
	EightBit Target = "eight bit" // the 8 bit type of its family: int8 of the same group, or mxfp8
)

// Precision gives the type of a tensor when base is what was asked for, and the rule that decided. Type 0 leaves the tensor
// as it is.
func (r Rules) Precision(name string, shape []int64, base quantize.Type) (quantize.Type, string) {
	if base == 0 {
		return 0, "kept"
	}
	for _, rule := range r.List {
		if rule.fits(name, shape, base, r.Layers) {
			return rule.choose(shape, base)
		}
	}
	return 0, "no rule"
}

// AsDraft is the table for a model that drafts for another: its head only decides what is proposed, so it gets the type
// that was asked for.
func (r Rules) AsDraft() Rules {
	head := Rule{Name: "head of a draft", Of: Quantized, Ends: []string{"embed_tokens.weight", "lm_head.weight"}, To: []Target{Base, Source}}
	return Rules{Layers: r.Layers, List: append([]Rule{head}, r.List...)}
}

func (r Rule) fits(name string, shape []int64, base quantize.Type, layers int) bool {
	in := func(part string) bool { return strings.Contains(name, part) }
	ends := func(end string) bool { return strings.HasSuffix(name, end) }
	expert := slices.ContainsFunc(expertNames, in)
	return (r.Has == nil || slices.ContainsFunc(r.Has, in)) &&
		(r.Ends == nil || slices.ContainsFunc(r.Ends, ends)) &&
		!slices.ContainsFunc(r.Not, ends) &&
		(r.Kind == "" || (r.Kind == Expert) == expert) &&
		r.Shape.has(shape, expert, base) &&
		r.Of.has(base) &&
		(r.Layers == "" || moreBits(layerOf(name), layers))
}

func (s ShapeClass) has(shape []int64, expert bool, base quantize.Type) bool {
	switch s {
	case NoMatrix:
		return len(shape) != 2 && (len(shape) != 3 || !expert)
	case Small:
		return elements(shape) < smallTensor
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
		}
		if aligned(shape, t) {
			return t, why
		}
		why = fmt.Sprintf("%s (%s does not fit the shape)", r.Name, t)
	}
	return 0, why
}

// eightBit is the 8 bit type of a type's family.
func eightBit(t quantize.Type) quantize.Type {
	switch {
	case t.IsCast():
		return t
	case t.Mode() == "affine":
		return quantize.Int8.WithGroup(t.Group())
	}
	return quantize.MXFP8
}

// aligned tells whether rows are whole groups of a type.
func aligned(shape []int64, t quantize.Type) bool {
	return t.IsCast() || len(shape) > 1 && shape[len(shape)-1]%int64(t.Group()) == 0
}

// layerOf is the number of the layer that a tensor's name has, -1 for none.
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

// generic is the precision table of models that say nothing else. Small and sensitive tensors stay; the output head, and
// the projections whose errors reach the residual stream directly, get 8 bits; all other matrices what was asked for.
var generic = []Rule{
	{Name: "decides in float32", Of: Casts, Ends: []string{".A_log", ".dt_bias", ".e_score_correction_bias"}, To: []Target{Source}},
	{Name: "cast", Of: Casts, To: []Target{Base}},

	{Name: "audio", Kind: NotExpert, Has: []string{"audio_tower", "embed_audio"}, To: []Target{Source}},
	{Name: "embedding", Kind: NotExpert, Has: []string{"embed"}, To: []Target{Source}},
	{Name: "norm", Kind: NotExpert, Has: []string{"norm", "ln_", "layernorm"}, To: []Target{Source}},
	{Name: "bias", Ends: []string{".bias"}, To: []Target{Source}},
	{Name: "no weight", Kind: NotExpert, Not: []string{".weight"}, To: []Target{Source}},
	{Name: "no matrix", Shape: NoMatrix, To: []Target{Source}},
	{Name: "small", Shape: Small, To: []Target{Source}},
	{Name: "routing", Ends: []string{".mlp.gate.weight", ".mixer.gate.weight", ".shared_expert_gate.weight", ".router.proj.weight"}, To: []Target{Source}},
	{Name: "output head", Ends: []string{"lm_head.weight"}, To: []Target{EightBit, Source}},
	{Name: "vision", Has: []string{"vision", "visual"}, To: []Target{Source}},
	{Name: "rows are not whole groups", Shape: Unaligned, To: []Target{Source}},
	{Name: "values, keys, down projection", Of: Affine, Has: sensitive, To: []Target{EightBit, Base}},
	{Name: "values, keys, down projection", Of: FP4, Kind: NotExpert, Has: sensitive, To: []Target{EightBit, Base}},
	{Name: "base", To: []Target{Base}},
}

// sensitive marks the projections that get more bits.
var sensitive = []string{".v_proj", ".k_proj", "down_proj"}

func genericRules(layers int, first ...Rule) Rules {
	return Rules{Layers: layers, List: slices.Concat(first, generic)}
}
