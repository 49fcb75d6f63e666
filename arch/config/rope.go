package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// RopeType is a method of deriving the frequencies of rotary position embedding.
type RopeType string

// The known rope types. Each model type's parser decides which ones it accepts.
const (
	RopeDefault      RopeType = "default"
	RopeLinear       RopeType = "linear"
	RopeLlama3       RopeType = "llama3"
	RopeYarn         RopeType = "yarn"
	RopeLong         RopeType = "longrope"
	RopeDynamic      RopeType = "dynamic"
	RopeProportional RopeType = "proportional"
)

// ropeMulti rotates by three positions, of time, height and width, which are equal for text. transformers reads it as
// the default type, too.
const ropeMulti = "mrope"

// Rope is a model's rotary position embedding (RoPE), with its scaling. Fields that its type does not use are zero.
type Rope struct {
	Type          RopeType
	Theta         float64
	PartialFactor float64 // fraction of a head that is rotated, 1 = all of it
	Factor        float64 // linear, llama3, yarn, longrope, dynamic, proportional
	OriginalMax   int     // context before scaling; llama3, yarn, longrope
	Context       int     // max_position_embeddings; dynamic

	// llama3
	LowFreqFactor, HighFreqFactor float64

	// yarn; longrope uses AttentionFactor too
	AttentionFactor    float64 // 0: derived from Factor, MScale and MScaleAllDim
	BetaFast, BetaSlow float64
	MScale             float64 // 0: absent
	MScaleAllDim       float64 // 0: absent
	Truncate           bool    // round the correction range outwards

	// longrope: one frequency divisor per pair, for sequences up to OriginalMax positions and for longer ones
	ShortFactor, LongFactor []float64
	// longrope: the attention factors of the two lengths; 0: AttentionFactor
	ShortScale, LongScale float64
}

// RopeOptions is what a model type expects of the rope keys.
type RopeOptions struct {
	Types   []RopeType // accepted types; nil = DecoderRopes
	Theta   float64    // default; 0 = 10000
	Partial float64    // default; 0 = 1
	HeadDim int        // size of the rotated heads
	Kind    RopeType   // type if there are no rope parameters at all; "" = default
	// OwnPartial is the default part of heads that the ropes of layer types rotate; 0 = they rotate whole heads.
	OwnPartial float64
	// inherit: parameters that the rope of a layer type lacks are those beside rope_parameters.
	Inherit bool
	// ZeroPartial treats a partial_rotary_factor of 0 as absent.
	ZeroPartial bool
}

const DefaultTheta = 10000

// MinTheta keeps frequencies, which are at most 1/theta, within what [MaxNumber] allows.
const MinTheta = 1 / MaxNumber

// Theta returns the base of rotary frequencies at key, or def if the key is absent.
func (o Object) Theta(key string, def float64) float64 {
	return o.Number(key, def, func(v float64) bool { return v > MinTheta }, fmt.Sprintf("be > %v", MinTheta))
}

// DecoderRopes are the types that every decoder accepts by default.
var DecoderRopes = []RopeType{RopeDefault, RopeLinear, RopeLlama3, RopeYarn, RopeLong, RopeDynamic}

// ParseRope reads the rope keys of a configuration: rope_theta and rope_scaling (transformers 4), or rope_parameters
// (transformers 5). Precedence, defaults and fallbacks follow transformers 5.23, modeling_rope_utils.py.
func ParseRope(o Object, context int, opts RopeOptions) Rope {
	theta := o.Theta("rope_theta", orDefault(opts.Theta, DefaultTheta))
	partial := o.partial(orDefault(opts.Partial, 1), opts)
	in, ok := o.Object("rope_scaling")
	if !ok {
		in, ok = o.Object("rope_parameters")
	}
	if !ok {
		return Rope{Type: RopeDefault, Theta: theta, PartialFactor: partial}
	}
	return ReadRope(o, in, theta, partial, context, opts)
}

// ReadRope reads an object of rope parameters. theta and partial are the defaults of absent keys.
func ReadRope(o, in Object, theta, partial float64, context int, opts RopeOptions) Rope {
	for _, k := range SortedKeys(in.Keys) {
		var nested map[string]json.RawMessage
		if json.Unmarshal(in.Keys[k], &nested) == nil && nested != nil {
			in.Fail(k, "be a plain value: parameters per layer type are not supported here")
		}
	}
	typeKey := "rope_type"
	if !in.Has(typeKey) && in.Has("type") {
		typeKey = "type"
	}
	r := Rope{
		Type:          RopeType(in.String(typeKey, string(RopeDefault))),
		Theta:         in.Theta("rope_theta", theta),
		PartialFactor: in.partial(partial, opts),
	}
	if r.Type == ropeMulti {
		r.Type = RopeDefault
	}
	types := opts.Types
	if types == nil {
		types = DecoderRopes
	}
	if !slices.Contains(types, r.Type) {
		in.Fail(typeKey, "be one of "+ropeTypeNames(types)+" (others are not supported)")
		return r
	}
	switch r.Type {
	case RopeLinear:
		r.Factor = in.factor()
	case RopeDynamic:
		r.Factor, r.Context = in.factor(), context
		if dim := int(float64(opts.HeadDim) * r.PartialFactor); dim <= 2 {
			// The exponent divides by dim-2.
			in.Fail(typeKey, fmt.Sprintf("not be dynamic where %d channels of a head are rotated", dim))
		}
	case RopeProportional:
		r.Factor = in.Above("factor", 1, 0)
	case RopeLong:
		r.longrope(o, in, context, opts.HeadDim)
	case RopeLlama3:
		r.Factor = in.factor()
		r.OriginalMax = OriginalMax(o, in, context)
		if r.LowFreqFactor = in.Above("low_freq_factor", 0, 0); !in.Has("low_freq_factor") {
			in.Missing("low_freq_factor")
		}
		r.HighFreqFactor = in.AtLeast("high_freq_factor", r.LowFreqFactor, r.LowFreqFactor)
		if !in.Has("high_freq_factor") {
			in.Missing("high_freq_factor")
		}
	case RopeYarn:
		r.yarn(o, in, context)
	}
	return r
}

func (r *Rope) longrope(o, in Object, context, headDim int) {
	r.OriginalMax = OriginalMax(o, in, context)
	if r.OriginalMax < 2 {
		in.Fail("original_max_position_embeddings", "be > 1 for rope type longrope")
	}
	if r.Factor = in.Above("factor", 0, 0); r.Factor == 0 {
		r.Factor = float64(context) / float64(max(r.OriginalMax, 1)) // as Phi-3 defines it
	}
	r.AttentionFactor = in.Above("attention_factor", 0, 0)
	pairs := int(float64(headDim)*r.PartialFactor) / 2
	for _, f := range []struct {
		key string
		to  *[]float64
	}{{"short_factor", &r.ShortFactor}, {"long_factor", &r.LongFactor}} {
		if !in.Has(f.key) {
			in.Missing(f.key)
		}
		if *f.to = in.Numbers(f.key, MaxHeadDim); len(*f.to) != pairs {
			in.Fail(f.key, fmt.Sprintf("have %d numbers, one per rotated pair (it has %d)", pairs, len(*f.to)))
		}
	}
}

func (r *Rope) yarn(o, in Object, context int) {
	r.OriginalMax = OriginalMax(o, in, context)
	if _, ok := in.Keys["factor"]; ok && !in.Has("factor") {
		// null: transformers derives the factor from the two context lengths (DeepSeek V3 publishes it so).
		r.Factor = float64(context) / float64(max(r.OriginalMax, 1))
	} else {
		r.Factor = in.factor()
	}
	if r.Theta <= 1 {
		// The correction range divides by log(theta).
		at := o
		if in.Has("rope_theta") {
			at = in
		}
		at.Fail("rope_theta", "be > 1 for rope type yarn")
	}
	r.AttentionFactor = in.Above("attention_factor", 0, 0)
	r.BetaFast = orDefault(in.AtLeast("beta_fast", 0, 0), 32)
	r.BetaSlow = orDefault(in.AtLeast("beta_slow", 0, 0), 1)
	if r.BetaFast < r.BetaSlow {
		key := "beta_fast"
		if !in.Has(key) {
			key = "beta_slow"
		}
		in.Fail(key, fmt.Sprintf("leave beta_fast >= beta_slow (they are %v and %v)", r.BetaFast, r.BetaSlow))
	}
	r.MScale = in.AtLeast("mscale", 0, 0)
	r.MScaleAllDim = in.AtLeast("mscale_all_dim", 0, 0)
	_, given := in.Keys["truncate"]
	// Only an absent key means true; transformers reads null as false.
	r.Truncate = in.Bool("truncate", !given)
}

// IgnorePartial is for models whose own default type rotates the whole head, whatever partial_rotary_factor is.
func (r *Rope) IgnorePartial(o Object) {
	if r.PartialFactor == 1 {
		return
	}
	if r.Type != RopeDefault && o.Failed() == nil {
		*o.Err = Errorf("partial_rotary_factor = %v: must be 1 for rope type %s", r.PartialFactor, r.Type)
	}
	r.PartialFactor = 1
}

func (o Object) partial(def float64, opts RopeOptions) float64 {
	const key = "partial_rotary_factor"
	if v, ok := AsNumber(o.Keys[key]); ok && v <= 0 && opts.ZeroPartial {
		return def
	}
	return o.Number(key, def, IsShare, "be > 0 and <= 1")
}

func (o Object) factor() float64 {
	if !o.Has("factor") {
		o.Missing("factor")
	}
	return o.Above("factor", 1, 0)
}

// OriginalMax returns the context before scaling. The top level takes precedence, as in transformers (Phi-3 publishes
// it there).
func OriginalMax(top, in Object, context int) int {
	const key = "original_max_position_embeddings"
	return top.Integer(key, in.Integer(key, context, 1, MaxContext), 1, MaxContext)
}

func IsShare(v float64) bool { return v > 0 && v <= 1 }

func orDefault[T int | float64](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

func ropeTypeNames(types []RopeType) string {
	out := make([]string, len(types))
	for i, t := range types {
		out[i] = string(t)
	}
	return strings.Join(out, ", ")
}

// EndlessContext is the context of models that have no longest one: that of llama.cpp's files.
const EndlessContext = 1 << 20

// NoRope is the rope of models without one.
var NoRope = Rope{Type: RopeDefault, Theta: DefaultTheta, PartialFactor: 1}

// RotaryDim replaces rotary_dim, a number of channels of a head of size dim, by partial_rotary_factor.
func RotaryDim(o Object, dim int) Object {
	const key, part = "rotary_dim", "partial_rotary_factor"
	if !o.Has(key) || o.Has(part) {
		return o
	}
	dim = o.Integer("head_dim", dim, 1, MaxHeadDim)
	rotated := o.Integer(key, dim, 2, dim)
	o.Keys = maps.Clone(o.Keys)
	o.Keys[part] = json.RawMessage(strconv.FormatFloat(float64(rotated)/float64(dim), 'g', -1, 64))
	return o
}
