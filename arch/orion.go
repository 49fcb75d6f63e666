package arch

import "github.com/ingotml/ingot/arch/decoder"

// Orion is the configuration of model type "orion": Llama with LayerNorms. Absent keys have the defaults of its
// publisher's configuration_orion.py; sizes are required.
type Orion struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "orion",
		Plain:         true,
		Architectures: []string{"OrionForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseOrion(config) },
		Docs:          Docs{Variants: "LayerNorms, tied embeddings", Code: equals("stablelm")},
	})
}

// ParseOrion parses the config.json of an orion model.
func ParseOrion(config []byte) (*Orion, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Orion{parseDense(top, o, commonDefaults{
		class: "OrionForCausalLM", ctx: 4096, eps: 1e-5, bos: []int32{1}, eos: []int32{2},
	}, ropeOptions{types: []RopeType{RopeDefault, RopeLinear, RopeDynamic}}, silu...)}
	m.AttentionBias, m.OutputBias = false, false
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Orion) Facts() Facts { return m.facts("orion", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Orion) Table() Table {
	hidden := int64(m.Hidden)
	last := func(t *Table, name string) { t.layerNorm(name, hidden) }
	return m.decoderWith("orion", last, func(t *Table, layer string, _ int) {
		t.layerNorm(layer+"input_layernorm", hidden)
		m.projections(t, layer+"self_attn", m.queries())
		t.layerNorm(layer+"post_attention_layernorm", hidden)
		m.mlp(t, layer+"mlp", m.Intermediate)
	})
}

// Decoder implements [Described].
func (m *Orion) Decoder() Decoder {
	return Decoder{
		Dense:       &m.Dense,
		Description: decoder.Description{Norm: decoder.Norm{LayerNorm: true, Bias: true}},
	}
}
