package arch

import "github.com/ingotml/ingot/arch/decoder"

// Glm4 is the configuration of model type "glm4" (GLM-4-0414, GLM-Z1): glm with further norms after attention and MLP.
// Absent keys have the defaults of transformers 5.23; sizes are required.
type Glm4 struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "glm4",
		Plain:         true,
		Aliases:       []string{"glm4v", "glm4v_text"},
		Towers:        []string{"glm4v"},
		Architectures: []string{"Glm4ForCausalLM", "Glm4vForConditionalGeneration"},
		Parse:         func(config []byte) (Model, error) { return ParseGlm4(config) },
		GGUF:          []GGUF{ggufGlm4},
		Docs: Docs{
			Variants: "partial rope of neighbouring channels, four norms, biases, tied embeddings; text of GLM-4.1V",
		},
	})
}

// ParseGlm4 parses the config.json of a glm4 model.
func ParseGlm4(config []byte) (*Glm4, error) {
	d, o, err := parseGlmDense(config, "Glm4ForCausalLM")
	if err != nil {
		return nil, err
	}
	return parsed(&Glm4{d}, o)
}

// Facts implements [Model].
func (m *Glm4) Facts() Facts { return m.facts("glm4", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Glm4) Table() Table {
	hidden := int64(m.Hidden)
	t := m.decoder("glm4", false, func(t *Table, layer string, _ int) {
		t.norm(layer+"input_layernorm", hidden, false)
		m.projections(t, layer+"self_attn", m.queries())
		t.norm(layer+"post_self_attn_layernorm", hidden, false)
		t.norm(layer+"post_attention_layernorm", hidden, false)
		m.mlp(t, layer+"mlp", m.Intermediate)
		t.norm(layer+"post_mlp_layernorm", hidden, false)
	})
	m.fusesGateUp(&t)
	t.dropTowers("glm4")
	return t
}

// Decoder implements [Described].
func (m *Glm4) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Description: decoder.Description{
		Interleaved: true,
		Norms: decoder.Norms{
			Mixer: "input_layernorm", MixerPost: "post_self_attn_layernorm",
			Network: "post_attention_layernorm", NetworkPost: "post_mlp_layernorm",
		},
	}}
}
