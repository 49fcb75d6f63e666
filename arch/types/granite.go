package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Granite is the configuration of model type "granite": Llama with four multipliers. Absent keys have the defaults of
// transformers 5.23; sizes are required.
type Granite struct {
	config.Dense
	EmbeddingScale float64 // of the embedding vectors
	AttentionScale float64 // of the attention scores
	ResidualScale  float64 // of what each block adds to the residual stream
	LogitDivisor   float64
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "granite",
		Plain:         true,
		Architectures: []string{"GraniteForCausalLM"},
		GGUF:          []gguf.Map{ggufGranite},
		Docs: arch.Docs{
			Variants: "multipliers of embeddings, scores, residuals and logits; biases; tied embeddings",
		},
	}, ParseGranite)
}

// ParseGranite parses the config.json of a granite model.
func ParseGranite(data []byte) (*Granite, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "GraniteForCausalLM", Context: 2048, NormEps: 1e-6, BOS: []int32{1}, EOS: []int32{2}}
	m := &Granite{
		Dense:          config.ParseDense(top, o, d, config.RopeOptions{}, config.SiLU...),
		EmbeddingScale: o.Above("embedding_multiplier", 1, 0),
		AttentionScale: o.Above("attention_multiplier", 1, 0),
		ResidualScale:  o.Above("residual_multiplier", 1, 0),
		LogitDivisor:   o.Above("logits_scaling", 1, 0),
	}
	m.MLPBias = o.Bool("mlp_bias", false)
	return config.Done(m, o)
}

func (m *Granite) Facts() config.Facts { return m.FactsAs("granite", m.Rope, m.Table()) }

func (m *Granite) Table() table.Table { return m.Decoder().Table("granite") }

func (m *Granite) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		EmbeddingScale: m.EmbeddingScale,
		AttentionScale: m.AttentionScale,
		ResidualScale:  m.ResidualScale,
		LogitScale:     1 / m.LogitDivisor,
	}}
}

// ggufGranite is the mapping of granite, which has the changes of llama.
var ggufGranite = gguf.Map{
	Architecture: "granite",
	Limits:       gguf.Limits{Biases: gguf.AllBiases},
	Config:       map[string]any{"model_type": "granite", "architectures": []string{"GraniteForCausalLM"}},
	Keys: gguf.Keys(
		gguf.Key{Key: "attention.scale", To: "attention_multiplier", Field: "AttentionScale", Optional: true},
		gguf.Key{Key: "embedding_scale", To: "embedding_multiplier", Field: "EmbeddingScale", Optional: true},
		gguf.Key{Key: "residual_scale", To: "residual_multiplier", Field: "ResidualScale", Optional: true},
		gguf.Key{Key: "logit_scale", To: "logits_scaling", Field: "LogitDivisor", Optional: true},
	),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.PairedQK, gguf.Values, gguf.MLP, gguf.PreNorms),
	Adjust: func(c map[string]any, f gguf.File) error {
		if err := gguf.SetBiases(c, f); err != nil {
			return err
		}
		return gguf.SetFactors(c, f)
	},
}
