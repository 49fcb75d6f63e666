package arch

import "github.com/ingotml/ingot/arch/decoder"

// StableLM is the configuration of model type "stablelm" (StableLM 2, 3B and 12B): a decoder with LayerNorms and a
// partial rope, whose MLP may read the same norm as attention. Absent keys have the defaults of transformers 5.23;
// sizes are required.
type StableLM struct {
	Dense
	QKNorm   bool // LayerNorms of query and key heads, each head with weights of its own
	Parallel bool // attention and MLP read the same norm
}

func init() {
	register(Arch{
		ModelType:     "stablelm",
		Plain:         true,
		Architectures: []string{"StableLmForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseStableLM(config) },
		GGUF:          []GGUF{ggufStableLM},
		Docs:          Docs{Variants: "partial rope, parallel blocks and norms of heads (12B), biases, tied embeddings"},
	})
}

// ParseStableLM parses the config.json of a stablelm model.
func ParseStableLM(config []byte) (*StableLM, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "StableLmForCausalLM", ctx: 4096, eps: 1e-5, bos: []int32{0}, eos: []int32{0}}
	m := &StableLM{
		Dense:    parseDense(top, o, d, ropeOptions{partial: 0.25}, silu...),
		QKNorm:   o.boolean("qk_layernorm", false),
		Parallel: o.boolean("use_parallel_residual", false),
	}
	m.NormEps = o.above("layer_norm_eps", 1e-5, 0)
	m.AttentionBias, m.OutputBias = o.boolean("use_qkv_bias", false), false
	return parsed(m, o)
}

// Facts implements [Model].
func (m *StableLM) Facts() Facts { return m.facts("stablelm", m.Rope, m.Table()) }

// Table implements [Model].
func (m *StableLM) Table() Table {
	hidden := int64(m.Hidden)
	last := func(t *Table, name string) { t.layerNorm(name, hidden) }
	return m.decoderWith("stablelm", last, func(t *Table, layer string, _ int) {
		t.layerNorm(layer+"input_layernorm", hidden)
		m.projections(t, layer+"self_attn", m.queries())
		if m.QKNorm {
			m.headNorm(t, layer+"self_attn.q_layernorm", m.Heads, queryRows(m.Heads, m.KVHeads))
			m.headNorm(t, layer+"self_attn.k_layernorm", m.KVHeads, keyRows(m.Heads, m.KVHeads))
		}
		if !m.Parallel {
			t.layerNorm(layer+"post_attention_layernorm", hidden)
		}
		m.mlp(t, layer+"mlp", m.Intermediate)
	})
}

// headNorm adds the weights of a norm with weights for each head, which checkpoints have one by one.
func (m *Dense) headNorm(t *Table, name string, heads int, by Split) {
	n, dim := int64(heads), int64(m.HeadDim)
	s := t.add(name+".weight", by, n, dim)
	s.Layout, s.Group = allHeads, name
	s.Forms = []Form{{
		Layout: eachHead, Make: Stack, Count: n, Names: []string{name + ".norms.*.weight"}, Shapes: [][]int64{{dim}},
	}}
}

// Decoder implements [Described].
func (m *StableLM) Decoder() Decoder {
	d := decoder.Description{Norm: decoder.Norm{LayerNorm: true, Bias: true}, Parallel: m.Parallel}
	if m.QKNorm {
		d.HeadNorms = decoder.HeadNorms{Q: "q_layernorm", K: "k_layernorm", Over: decoder.OwnHead}
	}
	if m.Parallel {
		d.Norms = decoder.BeforeShared
	}
	return Decoder{Dense: &m.Dense, Description: d}
}
