package gguf

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/internal/limits/clip"
)

// setRope sets rope_scaling by the keys rope.scaling.* and by the factors of the frequencies, if a file has them.
func setRope(c map[string]any, architecture string, f File) error {
	prefix := architecture + ".rope.scaling."
	v, ok := f.Value(prefix + "type")
	kind, _ := v.(string)
	scaling := map[string]any{}
	for _, k := range []struct{ key, to string }{
		{"factor", "factor"}, {"original_context_length", "original_max_position_embeddings"},
		{"yarn_attn_factor", "attention_factor"}, {"yarn_beta_fast", "beta_fast"}, {"yarn_beta_slow", "beta_slow"},
	} {
		if v, ok := f.Value(prefix + k.key); ok {
			scaling[k.to] = v
		}
	}
	attention, err := attentionFactor(prefix, kind, scaling, f)
	if err != nil {
		return err
	}
	if attention != 0 {
		scaling["attention_factor"] = attention
	}
	switch {
	case !ok || kind == "none":
		if v, old := f.Value(architecture + ".rope.scale_linear"); old {
			c["rope_scaling"] = map[string]any{"rope_type": "linear", "factor": v}
		}
	case kind == string(config.RopeLinear):
		c["rope_scaling"] = map[string]any{"rope_type": "linear", "factor": scaling["factor"]}
	case kind == string(config.RopeYarn):
		scaling["rope_type"] = "yarn"
		c["rope_scaling"] = scaling
	case kind == string(config.RopeLong):
		return SetLongRope(c, scaling, f)
	default:
		return fmt.Errorf("%w: %stype = %q: want none, linear, yarn or longrope", ErrMetadata, prefix,
			clip.Line(kind, config.MaxQuoted))
	}
	return nil
}

// attentionFactor returns the attention_factor that the key attn_factor makes; 0 if it changes nothing. llama.cpp
// multiplies the rotated queries and keys by attn_factor. With yarn this comes on top of 0.1 ln(factor) + 1, or of
// yarn_attn_factor, which is transformers' attention_factor and which llama.cpp itself does not use.
// https://github.com/ggml-org/llama.cpp/blob/master/src/llama-context.cpp
func attentionFactor(prefix, kind string, scaling map[string]any, f File) (float64, error) {
	real := func(v any) (float64, error) {
		n, _ := v.(json.Number)
		x, err := n.Float64()
		if err != nil || !(x > 0) {
			return 0, fmt.Errorf("%w: %s*: %v: want a positive number", ErrMetadata, prefix, Shown(v))
		}
		return x, nil
	}
	v, ok := f.Value(prefix + "attn_factor")
	if !ok || kind != string(config.RopeYarn) && kind != string(config.RopeLong) {
		return 0, nil
	}
	attention, err := real(v)
	if err != nil || kind == string(config.RopeLong) {
		return attention, err
	}
	if attention == 1 {
		return 0, nil
	}
	if v, ok := scaling["attention_factor"]; ok {
		own, err := real(v)
		return own * attention, err
	}
	factor, err := real(scaling["factor"])
	if factor > 1 {
		attention *= 0.1*math.Log(factor) + 1
	}
	return attention, err
}

// SetLongRope reads the two lists of factors that are tensors.
func SetLongRope(c, scaling map[string]any, f File) error {
	scaling["rope_type"] = string(config.RopeLong)
	for _, name := range []string{"short", "long"} {
		factors, err := f.Floats("rope_factors_" + name + ".weight")
		if err != nil {
			return err
		}
		scaling[name+"_factor"] = numbers32(factors)
	}
	c["rope_scaling"] = scaling
	return nil
}

// llama3Published are the parameters of the published models.
var llama3Published = []config.Rope{
	{Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalMax: 8192},
	{Factor: 32, LowFreqFactor: 1, HighFreqFactor: 4, OriginalMax: 8192},
	{Factor: 16, LowFreqFactor: 1, HighFreqFactor: 1, OriginalMax: 8192},
}

// SetFactors replaces the factors of the frequencies, which files have in place of llama3's parameters, by the
// parameters of a published model that has the same ones; otherwise by the factors themselves, as longrope has them.
func SetFactors(c map[string]any, f File) error {
	if _, ok := f.Shape(Factors); !ok {
		return nil
	}
	factors, err := f.Floats(Factors)
	if err != nil {
		return err
	}
	theta := config.DefaultTheta + 0.0
	if n, ok := c["rope_theta"].(json.Number); ok {
		if theta, err = n.Float64(); err != nil {
			return fmt.Errorf("%w: rope.freq_base = %s: want a number", ErrMetadata, n)
		}
	}
	for _, r := range llama3Published {
		if r.Theta = theta; r.HasFactors(factors) {
			c["rope_scaling"] = map[string]any{
				"rope_type": "llama3", "factor": r.Factor, "low_freq_factor": r.LowFreqFactor,
				"high_freq_factor": r.HighFreqFactor, "original_max_position_embeddings": r.OriginalMax,
			}
			return nil
		}
	}
	c["rope_scaling"] = map[string]any{
		"rope_type": "longrope", "short_factor": numbers32(factors), "long_factor": numbers32(factors), "factor": 1,
		"attention_factor": 1, "original_max_position_embeddings": c["max_position_embeddings"],
	}
	return nil
}

// numbers32 returns float32 numbers that JSON prints as short as they can be.
func numbers32(list []float32) []json.Number {
	out := make([]json.Number, len(list))
	for i, x := range list {
		b, _ := json.Marshal(x)
		out[i] = json.Number(b)
	}
	return out
}
