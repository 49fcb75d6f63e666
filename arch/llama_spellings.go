package arch

import "encoding/json"

// Types that are Llama with other keys for biases: https://huggingface.co/internlm/internlm-7b and
// https://huggingface.co/internlm/internlm3-8b-instruct.
const (
	internLM  = "internlm"
	internLM3 = "internlm3"
)

// internLM reads what these types spell in another way. The first has its rope in an object of its own.
func (m *Llama) internLM(o object, modelType string) {
	if modelType == internLM3 {
		m.AttentionBias, m.OutputBias = o.boolean("qkv_bias", false), o.boolean("bias", false)
		m.MLPBias = m.OutputBias
		return
	}
	m.AttentionBias = o.boolean("bias", true)
	m.OutputBias, m.MLPBias = m.AttentionBias, false
	rotary, ok := o.object("rotary")
	if !ok {
		return
	}
	scaling := map[string]any{"rope_theta": rotary.theta("base", defaultTheta)}
	switch kind := rotary.str("type", "origin"); kind {
	case "origin":
	case "dynamic":
		scaling["rope_type"], scaling["factor"] = string(RopeDynamic), rotary.above("scaling_factor", 1, 0)
	default:
		rotary.fail("type", `be "origin" or "dynamic"`)
	}
	if text, err := json.Marshal(scaling); err == nil {
		o.raw["rope_scaling"] = text
	}
}
