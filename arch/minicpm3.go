package arch

import "math"

// MiniCPM3 is the configuration of model type "minicpm3": latent attention and a dense feed-forward block, with scaled
// embeddings, residuals and logits. Absent keys have the defaults of transformers 5.23; sizes are required.
type MiniCPM3 struct {
	LatentDecoder
	EmbeddingScale float64
	ResidualScale  float64 // of the output of each layer's parts
	LogitScale     float64
}

func init() {
	register(Arch{
		ModelType:     "minicpm3",
		Architectures: []string{"MiniCPM3ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseMiniCPM3(config) },
		GGUF:          []GGUF{ggufMiniCPM3},
		Docs:          Docs{Variants: "low-rank or single query projection, longrope, biases, tied embeddings"},
	})
}

// ParseMiniCPM3 parses the config.json of a minicpm3 model.
func ParseMiniCPM3(config []byte) (*MiniCPM3, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{
		class: "MiniCPM3ForCausalLM", ctx: 32768, eps: 1e-5, tied: true, bos: []int32{1}, eos: []int32{2},
	}
	m := &MiniCPM3{
		LatentDecoder:  parseLatent(top, o, d, latentDefaults{query: 768, kv: 256, nope: 64, rope: 32}, ropeOptions{}),
		EmbeddingScale: o.above("scale_emb", 12, 0),
	}
	if m.Latent.ValueDim == 0 {
		if m.Latent.ValueDim = m.Hidden / m.Heads; m.Latent.ValueDim == 0 {
			o.fail("hidden_size", "be at least num_attention_heads, since there is no v_head_dim")
		}
	}
	m.Latent.Interleaved = false
	m.MLPBias = o.boolean("mlp_bias", false)
	layers := math.Sqrt(float64(m.Layers))
	depth, base := 1.4, 256
	if o.isNull("scale_depth") {
		depth = layers
	}
	if o.isNull("dim_model_base") {
		base = m.Hidden
	}
	m.ResidualScale = o.above("scale_depth", depth, 0) / layers
	m.LogitScale = float64(o.integer("dim_model_base", base, 1, maxWidth)) / float64(m.Hidden)
	return parsed(m, o)
}

// Facts implements [Model].
func (m *MiniCPM3) Facts() Facts { return m.facts("minicpm3", m.Rope, m.Table()) }

// Table implements [Model].
func (m *MiniCPM3) Table() Table { return m.table("minicpm3") }
