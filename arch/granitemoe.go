package arch

import "github.com/ingotml/ingot/arch/decoder"

// GraniteMoe is the configuration of model type "granitemoe": [Granite] with experts in every layer. Absent keys have
// the defaults of transformers 5.23; sizes are required.
type GraniteMoe struct {
	Granite
	Mixture Mixture
}

func init() {
	register(Arch{
		ModelType:     "granitemoe",
		Plain:         true,
		Architectures: []string{"GraniteMoeForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseGraniteMoe(config) },
		GGUF:          []GGUF{ggufGraniteMoe},
		Docs: Docs{
			Variants: "multipliers of embeddings, scores, residuals and logits; stacked experts; biases; tied embeddings",
			Rules:    "generic, also for experts",
		},
	})
}

// ParseGraniteMoe parses the config.json of a granitemoe model.
func ParseGraniteMoe(config []byte) (*GraniteMoe, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "GraniteMoeForCausalLM", ctx: 2048, eps: 1e-6, bos: []int32{1}, eos: []int32{2}}
	m := &GraniteMoe{Granite: Granite{
		Dense:          parseDecoder(top, o, d, ropeOptions{}),
		EmbeddingScale: o.above("embedding_multiplier", 1, 0),
		AttentionScale: o.above("attention_multiplier", 1, 0),
		ResidualScale:  o.above("residual_multiplier", 1, 0),
		LogitDivisor:   o.above("logits_scaling", 1, 0),
	}}
	m.Mixture.parseExperts(o, m.Common, mixtureDefaults{count: 8, perToken: 2}, "intermediate_size")
	m.Mixture.Experts.NormTopK = true
	return parsed(m, o)
}

// Facts implements [Model].
func (m *GraniteMoe) Facts() Facts { return m.facts("granitemoe", m.Rope, m.Table()) }

// Table implements [Model].
func (m *GraniteMoe) Table() Table {
	t := m.decodes("granitemoe", m.Mixture, nil)
	const block = ".block_sparse_moe."
	t.also(
		[]string{
			".mlp.gate.", block + "router.layer.", ".mlp.experts.gate_up_proj", block + "input_linear.weight",
			".mlp.experts.down_proj", block + "output_linear.weight",
		},
		[]string{".mlp.gate.", block + "router.", ".mlp.", block},
	)
	return t
}

// Decoder implements [Described].
func (m *GraniteMoe) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		EmbeddingScale: m.EmbeddingScale,
		AttentionScale: m.AttentionScale,
		ResidualScale:  m.ResidualScale,
		LogitScale:     1 / m.LogitDivisor,
	}}
}
