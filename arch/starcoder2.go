package arch

import "github.com/ingotml/ingot/arch/decoder"

// Starcoder2 is the configuration of model type "starcoder2": a pre-norm decoder with LayerNorms, biases and a plain
// MLP. Absent keys have the defaults of transformers 5.23; sizes are required.
type Starcoder2 struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "starcoder2",
		Plain:         true,
		Architectures: []string{"Starcoder2ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseStarcoder2(config) },
		GGUF:          []GGUF{ggufStarcoder2},
		Docs:          Docs{Variants: "with and without biases, sliding window in all layers, untied embeddings"},
	})
}

// ParseStarcoder2 parses the config.json of a starcoder2 model.
func ParseStarcoder2(config []byte) (*Starcoder2, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Starcoder2{parseDense(top, o, commonDefaults{
		class: "Starcoder2ForCausalLM", kv: 2, ctx: 4096, eps: 1e-5, tied: true, bos: []int32{50256}, eos: []int32{50256},
	}, ropeOptions{}, gelu...)}
	m.NormEps = o.above("norm_epsilon", 1e-5, 0)
	m.AttentionBias = o.boolean("use_bias", true)
	m.OutputBias, m.MLPBias = m.AttentionBias, m.AttentionBias
	m.everywhere(o.window("sliding_window", 0))
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Starcoder2) Facts() Facts { return m.facts("starcoder2", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Starcoder2) Table() Table {
	hidden := int64(m.Hidden)
	last := func(t *Table, name string) { t.layerNorm(name, hidden) }
	return m.decoderWith("starcoder2", last, func(t *Table, layer string, _ int) {
		t.layerNorm(layer+"input_layernorm", hidden)
		m.projections(t, layer+"self_attn", m.queries())
		t.layerNorm(layer+"post_attention_layernorm", hidden)
		m.plainMLP(t, layer+"mlp.c_fc", layer+"mlp.c_proj")
	})
}

// Decoder implements [Described].
func (m *Starcoder2) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norm:  decoder.Norm{LayerNorm: true, Bias: true},
		Plain: decoder.Plain{Up: "c_fc", Down: "c_proj"},
	}}
}
