package arch

import "github.com/ingotml/ingot/arch/decoder"

// Cohere is the configuration of model type "cohere" (Command R, Aya): attention and MLP in parallel, after one
// LayerNorm without bias; rope of neighbouring channels; scaled logits. Absent keys have the defaults of transformers
// 5.23; sizes are required.
type Cohere struct {
	Dense
	LogitScale float64
	QKNorm     bool // LayerNorms of query and key heads, each head with weights of its own
}

func init() {
	register(Arch{
		ModelType:     "cohere",
		Plain:         true,
		Architectures: []string{"CohereForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseCohere(config) },
		GGUF:          []GGUF{ggufCohere},
		Docs:          Docs{Variants: "parallel blocks, norms of queries and keys (Command R+), biases, untied embeddings"},
	})
}

// ParseCohere parses the config.json of a cohere model.
func ParseCohere(config []byte) (*Cohere, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Cohere{
		Dense:      parseCohere(top, o, "CohereForCausalLM", ropeOptions{theta: 5e5}),
		LogitScale: o.above("logit_scale", 0.0625, 0),
		QKNorm:     o.boolean("use_qk_norm", false),
	}
	return parsed(m, o)
}

// parseCohere reads the keys that cohere and cohere2 share.
func parseCohere(top, o object, class string, r ropeOptions) Dense {
	m := parseDense(top, o, commonDefaults{
		class: class, ctx: 8192, eps: 1e-5, tied: true, bos: []int32{5}, eos: []int32{255001},
	}, r, silu...)
	m.NormEps = o.above("layer_norm_eps", 1e-5, 0)
	return m
}

// Facts implements [Model].
func (m *Cohere) Facts() Facts { return m.facts("cohere", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Cohere) Table() Table {
	return m.parallel("cohere", func(t *Table, name string) {
		if m.QKNorm {
			t.add(name+".q_norm.weight", queryRows(m.Heads, m.KVHeads), int64(m.Heads), int64(m.HeadDim))
			t.add(name+".k_norm.weight", keyRows(m.Heads, m.KVHeads), int64(m.KVHeads), int64(m.HeadDim))
		}
	})
}

// parallel makes the table of a decoder with one norm per layer. norms adds those of queries and keys, if there are
// any.
func (m *Dense) parallel(modelType string, norms func(t *Table, name string)) Table {
	return m.decoder(modelType, false, func(t *Table, layer string, _ int) {
		t.norm(layer+"input_layernorm", int64(m.Hidden), false)
		m.projections(t, layer+"self_attn", m.queries())
		norms(t, layer+"self_attn")
		m.mlp(t, layer+"mlp", m.Intermediate)
	})
}

// Decoder implements [Described].
func (m *Cohere) Decoder() Decoder {
	d := decoder.Description{
		Norm:        decoder.Norm{LayerNorm: true},
		Norms:       decoder.BeforeShared,
		Parallel:    true,
		Interleaved: true,
		LogitScale:  m.LogitScale,
	}
	if m.QKNorm {
		d.HeadNorms = decoder.HeadNorms{Q: "q_norm", K: "k_norm", Over: decoder.OwnHead}
	}
	return Decoder{Dense: &m.Dense, Description: d}
}
