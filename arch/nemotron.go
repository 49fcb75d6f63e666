package arch

import "github.com/ingotml/ingot/arch/decoder"

// Nemotron is the configuration of model type "nemotron" (Nemotron-4, Minitron): a pre-norm decoder with LayerNorms
// whose weights are used as 1 + w, a partial rope, and a plain MLP that squares the positive part. Absent keys have
// the defaults of transformers 5.23; sizes are required.
type Nemotron struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "nemotron",
		Plain:         true,
		Architectures: []string{"NemotronForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseNemotron(config) },
		GGUF:          []GGUF{ggufNemotron},
		Docs:          Docs{Variants: "partial rope, biases, tied embeddings"},
	})
}

// ParseNemotron parses the config.json of a nemotron model.
func ParseNemotron(config []byte) (*Nemotron, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "NemotronForCausalLM", ctx: 4096, eps: 1e-5, bos: []int32{2}, eos: []int32{3}}
	m := &Nemotron{parseDense(top, o, d, ropeOptions{partial: 0.5}, "relu2")}
	m.NormEps = o.above("norm_eps", 1e-5, 0)
	m.MLPBias = o.boolean("mlp_bias", false)
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Nemotron) Facts() Facts { return m.facts("nemotron", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Nemotron) Table() Table {
	hidden := int64(m.Hidden)
	last := func(t *Table, name string) { t.layerNorm(name, hidden) }
	return m.decoderWith("nemotron", last, func(t *Table, layer string, _ int) {
		t.layerNorm(layer+"input_layernorm", hidden)
		m.projections(t, layer+"self_attn", m.queries())
		t.layerNorm(layer+"post_attention_layernorm", hidden)
		m.plainMLP(t, layer+"mlp.up_proj", layer+"mlp.down_proj")
	})
}

// Decoder implements [Described].
func (m *Nemotron) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norm:  decoder.Norm{LayerNorm: true, Bias: true, Offset: true},
		Plain: decoder.UpDown,
	}}
}
