package arch

import (
	"encoding/json"
	"maps"
)

// Phi3 is the configuration of model type "phi3" (Phi-3, Phi-3.5, Phi-4): a pre-norm decoder whose rope rotates a part
// of each head and has two lists of factors (longrope). Checkpoints have queries, keys and values in one tensor, gate
// and up in another. Absent keys have the defaults of transformers 5.23; sizes are required.
type Phi3 struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "phi3",
		Plain:         true,
		Architectures: []string{"Phi3ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParsePhi3(config) },
		GGUF:          []GGUF{ggufPhi3},
		Docs: Docs{
			Variants: "Phi-3, Phi-3.5, Phi-4: fused projections, partial rope, longrope, sliding window in all layers",
		},
	})
}

// ParsePhi3 parses the config.json of a phi3 model.
func ParsePhi3(config []byte) (*Phi3, error) {
	return parsePhi3(config, commonDefaults{
		class: "Phi3ForCausalLM", ctx: 4096, eps: 1e-5, bos: []int32{1}, eos: []int32{32000},
	})
}

func parsePhi3(config []byte, d commonDefaults) (*Phi3, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	o = phi3Rope(o)
	types := []RopeType{RopeDefault, RopeLong}
	m := &Phi3{parseDense(top, o, d, ropeOptions{types: types, partial: 1}, silu...)}
	m.AttentionBias, m.OutputBias = false, false
	m.everywhere(o.window("sliding_window", 0))
	return parsed(m, o)
}

// phi3Rope replaces the first published names of longrope, and adds the default of the context before scaling.
func phi3Rope(o object) object {
	o.raw = maps.Clone(o.raw)
	if key := "original_max_position_embeddings"; !o.has(key) {
		o.raw[key] = json.RawMessage("4096")
	}
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		in, ok := o.object(key)
		if !ok {
			continue
		}
		for _, kind := range []string{"type", "rope_type"} {
			if s := in.str(kind, ""); s == "su" || s == "yarn" {
				in.raw[kind] = json.RawMessage(`"longrope"`)
			}
		}
		if text, err := json.Marshal(in.raw); err == nil {
			o.raw[key] = text
		}
	}
	return o
}

// Facts implements [Model].
func (m *Phi3) Facts() Facts { return m.facts("phi3", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Phi3) Table() Table {
	t := m.preNorm("phi3", false)
	for i := range m.Layers {
		attention, mlp := m.layer(i)+"self_attn.", m.layer(i)+"mlp."
		t.fuses(attention+"qkv_proj", attention+"q_proj", attention+"k_proj", attention+"v_proj")
		t.fuses(mlp+"gate_up_proj", mlp+"gate_proj", mlp+"up_proj")
	}
	return t
}

// Decoder implements [Described].
func (m *Phi3) Decoder() Decoder {
	return Decoder{Dense: &m.Dense}
}
