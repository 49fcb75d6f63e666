package arch

import "github.com/ingotml/ingot/arch/decoder"

// Granite is the configuration of model type "granite": Llama with four multipliers. Absent keys have the defaults of
// transformers 5.23; sizes are required.
type Granite struct {
	Dense
	EmbeddingScale float64 // of the embedding vectors
	AttentionScale float64 // of the attention scores
	ResidualScale  float64 // of what each block adds to the residual stream
	LogitDivisor   float64
}

func init() {
	register(Arch{
		ModelType:     "granite",
		Plain:         true,
		Architectures: []string{"GraniteForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseGranite(config) },
		GGUF:          []GGUF{ggufGranite},
		Docs:          Docs{Variants: "multipliers of embeddings, scores, residuals and logits; biases; tied embeddings"},
	})
}

// ParseGranite parses the config.json of a granite model.
func ParseGranite(config []byte) (*Granite, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "GraniteForCausalLM", ctx: 2048, eps: 1e-6, bos: []int32{1}, eos: []int32{2}}
	m := &Granite{
		Dense:          parseDense(top, o, d, ropeOptions{}, silu...),
		EmbeddingScale: o.above("embedding_multiplier", 1, 0),
		AttentionScale: o.above("attention_multiplier", 1, 0),
		ResidualScale:  o.above("residual_multiplier", 1, 0),
		LogitDivisor:   o.above("logits_scaling", 1, 0),
	}
	m.MLPBias = o.boolean("mlp_bias", false)
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Granite) Facts() Facts { return m.facts("granite", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Granite) Table() Table { return m.preNorm("granite", false) }

// Decoder implements [Described].
func (m *Granite) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Description: decoder.Description{
		EmbeddingScale: m.EmbeddingScale,
		AttentionScale: m.AttentionScale,
		ResidualScale:  m.ResidualScale,
		LogitScale:     1 / m.LogitDivisor,
	}}
}
