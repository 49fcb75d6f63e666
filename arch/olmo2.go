package arch

import "github.com/ingotml/ingot/arch/decoder"

// Olmo2 is the configuration of model type "olmo2": norms after attention and MLP instead of before them, and norms of
// queries and keys over all heads of a row. Absent keys have the defaults of transformers 5.23; sizes are required.
type Olmo2 struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "olmo2",
		Plain:         true,
		Architectures: []string{"Olmo2ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseOlmo2(config) },
		GGUF:          []GGUF{ggufOlmo2},
		Docs:          Docs{Variants: "biases, tied embeddings"},
	})
}

// ParseOlmo2 parses the config.json of an olmo2 model.
func ParseOlmo2(config []byte) (*Olmo2, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "Olmo2ForCausalLM", ctx: 2048, eps: 1e-5, eos: []int32{50279}}
	return parsed(&Olmo2{parseDense(top, o, d, ropeOptions{}, silu...)}, o)
}

// Facts implements [Model].
func (m *Olmo2) Facts() Facts { return m.facts("olmo2", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Olmo2) Table() Table { return m.postNorm("olmo2") }

// postNorm makes the table of a decoder with norms after attention and MLP, and of whole rows of queries and keys.
func (m *Dense) postNorm(modelType string) Table {
	hidden := int64(m.Hidden)
	return m.decoder(modelType, false, func(t *Table, layer string, _ int) {
		m.projections(t, layer+"self_attn", m.queries())
		m.wholeNorms(t, layer+"self_attn")
		t.norm(layer+"post_attention_layernorm", hidden, false)
		m.mlp(t, layer+"mlp", m.Intermediate)
		t.norm(layer+"post_feedforward_layernorm", hidden, false)
	})
}

// wholeNorms adds the norms of queries and of keys, each over all heads of a row.
func (m *Dense) wholeNorms(t *Table, name string) {
	t.add(name+".q_norm.weight", queryRows(m.Heads, m.KVHeads), m.queries())
	t.add(name+".k_norm.weight", keyRows(m.Heads, m.KVHeads), int64(m.KVHeads)*int64(m.HeadDim))
}

// Decoder implements [Described].
func (m *Olmo2) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Description: decoder.Description{
		HeadNorms: decoder.HeadNorms{Q: "q_norm", K: "k_norm", Over: decoder.Row},
		Norms:     decoder.After,
	}}
}
