package types

import (
	"encoding/json"

	"github.com/ingotml/ingot/arch/config"
)

// Types that are Llama with other keys for biases: https://huggingface.co/internlm/internlm-7b and
// https://huggingface.co/internlm/internlm3-8b-instruct.
const (
	internLM  = "internlm"
	internLM3 = "internlm3"
)

// internLM reads what these types spell in another way. The first has its rope in an object of its own.
func (m *Llama) internLM(o config.Object, modelType string) {
	if modelType == internLM3 {
		m.AttentionBias, m.OutputBias = o.Bool("qkv_bias", false), o.Bool("bias", false)
		m.MLPBias = m.OutputBias
		return
	}
	m.AttentionBias = o.Bool("bias", true)
	m.OutputBias, m.MLPBias = m.AttentionBias, false
	rotary, ok := o.Object("rotary")
	if !ok {
		return
	}
	scaling := map[string]any{"rope_theta": rotary.Theta("base", config.DefaultTheta)}
	switch kind := rotary.String("type", "origin"); kind {
	case "origin":
	case "dynamic":
		scaling["rope_type"], scaling["factor"] = string(config.RopeDynamic), rotary.Above("scaling_factor", 1, 0)
	default:
		rotary.Fail("type", `be "origin" or "dynamic"`)
	}
	if text, err := json.Marshal(scaling); err == nil {
		o.Keys["rope_scaling"] = text
	}
}
