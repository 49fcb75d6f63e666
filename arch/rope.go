package arch

import (
	"encoding/json"
	"fmt"
	"slices"
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

// ropeOptions is what a model type expects of the rope keys.
type ropeOptions struct {
	types   []RopeType // accepted types; nil = decoderRopes
	theta   float64    // default; 0 = 10000
	partial float64    // default; 0 = 1
	headDim int        // size of the rotated heads
	kind    RopeType   // type if there are no rope parameters at all; "" = default
	// ownPartial is the default part of heads that the ropes of layer types rotate; 0 = they rotate whole heads.
	ownPartial float64
	// inherit: parameters that the rope of a layer type lacks are those beside rope_parameters.
	inherit bool
	// zeroPartial treats a partial_rotary_factor of 0 as absent.
	zeroPartial bool
}

const defaultTheta = 10000

// minTheta keeps frequencies, which are at most 1/theta, within what [maxNumber] allows.
const minTheta = 1 / maxNumber

// theta returns the base of rotary frequencies at key, or def if the key is absent.
func (o object) theta(key string, def float64) float64 {
	return o.number(key, def, func(v float64) bool { return v > minTheta }, fmt.Sprintf("be > %v", minTheta))
}

// decoderRopes are the types that every decoder accepts by default.
var decoderRopes = []RopeType{RopeDefault, RopeLinear, RopeLlama3, RopeYarn, RopeLong, RopeDynamic}

// parseRope reads the rope keys of a configuration: rope_theta and rope_scaling (transformers 4), or rope_parameters
// (transformers 5). Precedence, defaults and fallbacks follow transformers 5.23, modeling_rope_utils.py.
func parseRope(o object, context int, opts ropeOptions) Rope {
	theta := o.theta("rope_theta", orDefault(opts.theta, defaultTheta))
	partial := o.partial(orDefault(opts.partial, 1), opts)
	in, ok := o.object("rope_scaling")
	if !ok {
		in, ok = o.object("rope_parameters")
	}
	if !ok {
		return Rope{Type: RopeDefault, Theta: theta, PartialFactor: partial}
	}
	return readRope(o, in, theta, partial, context, opts)
}

// readRope reads an object of rope parameters. theta and partial are the defaults of absent keys.
func readRope(o, in object, theta, partial float64, context int, opts ropeOptions) Rope {
	for _, k := range sortedKeys(in.raw) {
		var nested map[string]json.RawMessage
		if json.Unmarshal(in.raw[k], &nested) == nil && nested != nil {
			in.fail(k, "be a plain value: parameters per layer type are not supported here")
		}
	}
	typeKey := "rope_type"
	if !in.has(typeKey) && in.has("type") {
		typeKey = "type"
	}
	r := Rope{
		Type:          RopeType(in.str(typeKey, string(RopeDefault))),
		Theta:         in.theta("rope_theta", theta),
		PartialFactor: in.partial(partial, opts),
	}
	if r.Type == ropeMulti {
		r.Type = RopeDefault
	}
	types := opts.types
	if types == nil {
		types = decoderRopes
	}
	if !slices.Contains(types, r.Type) {
		in.fail(typeKey, "be one of "+ropeTypeNames(types)+" (others are not supported)")
		return r
	}
	switch r.Type {
	case RopeLinear:
		r.Factor = in.factor()
	case RopeDynamic:
		r.Factor, r.Context = in.factor(), context
		if dim := int(float64(opts.headDim) * r.PartialFactor); dim <= 2 {
			// The exponent divides by dim-2.
			in.fail(typeKey, fmt.Sprintf("not be dynamic where %d channels of a head are rotated", dim))
		}
	case RopeProportional:
		r.Factor = in.above("factor", 1, 0)
	case RopeLong:
		r.longrope(o, in, context, opts.headDim)
	case RopeLlama3:
		r.Factor = in.factor()
		r.OriginalMax = originalMax(o, in, context)
		if r.LowFreqFactor = in.above("low_freq_factor", 0, 0); !in.has("low_freq_factor") {
			in.missing("low_freq_factor")
		}
		r.HighFreqFactor = in.atLeast("high_freq_factor", r.LowFreqFactor, r.LowFreqFactor)
		if !in.has("high_freq_factor") {
			in.missing("high_freq_factor")
		}
	case RopeYarn:
		r.yarn(o, in, context)
	}
	return r
}

func (r *Rope) longrope(o, in object, context, headDim int) {
	r.OriginalMax = originalMax(o, in, context)
	if r.OriginalMax < 2 {
		in.fail("original_max_position_embeddings", "be > 1 for rope type longrope")
	}
	if r.Factor = in.above("factor", 0, 0); r.Factor == 0 {
		r.Factor = float64(context) / float64(max(r.OriginalMax, 1)) // as Phi-3 defines it
	}
	r.AttentionFactor = in.above("attention_factor", 0, 0)
	pairs := int(float64(headDim)*r.PartialFactor) / 2
	for _, f := range []struct {
		key string
		to  *[]float64
	}{{"short_factor", &r.ShortFactor}, {"long_factor", &r.LongFactor}} {
		if !in.has(f.key) {
			in.missing(f.key)
		}
		if *f.to = in.numbers(f.key, maxHeadDim); len(*f.to) != pairs {
			in.fail(f.key, fmt.Sprintf("have %d numbers, one per rotated pair (it has %d)", pairs, len(*f.to)))
		}
	}
}

func (r *Rope) yarn(o, in object, context int) {
	r.OriginalMax = originalMax(o, in, context)
	if _, ok := in.raw["factor"]; ok && !in.has("factor") {
		// null: transformers derives the factor from the two context lengths (DeepSeek V3 publishes it so).
		r.Factor = float64(context) / float64(max(r.OriginalMax, 1))
	} else {
		r.Factor = in.factor()
	}
	if r.Theta <= 1 {
		// The correction range divides by log(theta).
		at := o
		if in.has("rope_theta") {
			at = in
		}
		at.fail("rope_theta", "be > 1 for rope type yarn")
	}
	r.AttentionFactor = in.above("attention_factor", 0, 0)
	r.BetaFast = orDefault(in.atLeast("beta_fast", 0, 0), 32)
	r.BetaSlow = orDefault(in.atLeast("beta_slow", 0, 0), 1)
	if r.BetaFast < r.BetaSlow {
		key := "beta_fast"
		if !in.has(key) {
			key = "beta_slow"
		}
		in.fail(key, fmt.Sprintf("leave beta_fast >= beta_slow (they are %v and %v)", r.BetaFast, r.BetaSlow))
	}
	r.MScale = in.atLeast("mscale", 0, 0)
	r.MScaleAllDim = in.atLeast("mscale_all_dim", 0, 0)
	_, given := in.raw["truncate"]
	// Only an absent key means true; transformers reads null as false.
	r.Truncate = in.boolean("truncate", !given)
}

// ignorePartial is for models whose own default type rotates the whole head, whatever partial_rotary_factor is.
func (r *Rope) ignorePartial(o object) {
	if r.PartialFactor == 1 {
		return
	}
	if r.Type != RopeDefault && o.failed() == nil {
		*o.err = configErrorf("partial_rotary_factor = %v: must be 1 for rope type %s", r.PartialFactor, r.Type)
	}
	r.PartialFactor = 1
}

func (o object) partial(def float64, opts ropeOptions) float64 {
	const key = "partial_rotary_factor"
	if v, ok := asNumber(o.raw[key]); ok && v <= 0 && opts.zeroPartial {
		return def
	}
	return o.number(key, def, isShare, "be > 0 and <= 1")
}

func (o object) factor() float64 {
	if !o.has("factor") {
		o.missing("factor")
	}
	return o.above("factor", 1, 0)
}

// originalMax returns the context before scaling. The top level takes precedence, as in transformers (Phi-3 publishes
// it there).
func originalMax(top, in object, context int) int {
	const key = "original_max_position_embeddings"
	return top.integer(key, in.integer(key, context, 1, maxContext), 1, maxContext)
}

func isShare(v float64) bool { return v > 0 && v <= 1 }

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
