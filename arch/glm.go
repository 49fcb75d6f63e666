package arch

import "github.com/ingotml/ingot/arch/decoder"

// Glm is the configuration of model type "glm" (GLM-4, GLM-Edge): a pre-norm decoder whose rope rotates neighbouring
// channels of half of each head. Checkpoints have gate and up in one tensor. Absent keys have the defaults of
// transformers 5.23; sizes are required.
type Glm struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "glm",
		Plain:         true,
		Architectures: []string{"GlmForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseGlm(config) },
		GGUF:          []GGUF{ggufGlm},
		Docs:          Docs{Variants: "partial rope of neighbouring channels, biases, tied embeddings"},
	})
}

// ParseGlm parses the config.json of a glm model.
func ParseGlm(config []byte) (*Glm, error) {
	d, o, err := parseGlmDense(config, "GlmForCausalLM")
	if err != nil {
		return nil, err
	}
	return parsed(&Glm{d}, o)
}

// parseGlmDense reads the keys of glm and glm4. The output projection has no bias.
func parseGlmDense(config []byte, class string) (Dense, object, error) {
	top, o, err := openText(config)
	if err != nil {
		return Dense{}, o, err
	}
	m := parseDense(top, o, commonDefaults{
		class: class, kv: 2, dim: 128, ctx: 1 << 17, eps: 1.5625e-7, eos: []int32{151329, 151336, 151338},
	}, ropeOptions{partial: 0.5}, silu...)
	m.AttentionBias, m.OutputBias = o.boolean("attention_bias", true), false
	return m, o, nil
}

// Facts implements [Model].
func (m *Glm) Facts() Facts { return m.facts("glm", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Glm) Table() Table {
	t := m.preNorm("glm", false)
	m.fusesGateUp(&t)
	return t
}

// fusesGateUp states that checkpoints have gate and up of each layer in one tensor.
func (m *Dense) fusesGateUp(t *Table) {
	for i := range m.Layers {
		mlp := m.layer(i) + "mlp."
		t.fuses(mlp+"gate_up_proj", mlp+"gate_proj", mlp+"up_proj")
	}
}

// Decoder implements [Described].
func (m *Glm) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Description: decoder.Description{Interleaved: true}}
}
