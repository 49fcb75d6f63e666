package arch

import "github.com/ingotml/ingot/arch/decoder"

// Arcee is the configuration of model type "arcee" (AFM): Llama with a plain MLP that squares the positive part. Absent
// keys have the defaults of transformers 5.23; sizes are required.
type Arcee struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "arcee",
		Plain:         true,
		Architectures: []string{"ArceeForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseArcee(config) },
		GGUF:          []GGUF{ggufArcee},
		Docs:          Docs{Variants: "biases, tied embeddings"},
	})
}

// ParseArcee parses the config.json of an arcee model.
func ParseArcee(config []byte) (*Arcee, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "ArceeForCausalLM", ctx: 4096, eps: 1e-5, bos: []int32{128000}, eos: []int32{128001}}
	m := &Arcee{parseDense(top, o, d, ropeOptions{}, "relu2")}
	m.MLPBias = o.boolean("mlp_bias", false)
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Arcee) Facts() Facts { return m.facts("arcee", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Arcee) Table() Table {
	hidden := int64(m.Hidden)
	return m.decoder("arcee", false, func(t *Table, layer string, _ int) {
		t.norm(layer+"input_layernorm", hidden, false)
		m.projections(t, layer+"self_attn", m.queries())
		t.norm(layer+"post_attention_layernorm", hidden, false)
		m.plainMLP(t, layer+"mlp.up_proj", layer+"mlp.down_proj")
	})
}

// Decoder implements [Described].
func (m *Arcee) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Description: decoder.Description{Plain: decoder.UpDown}}
}
