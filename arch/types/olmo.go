package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Olmo is the configuration of model type "olmo" (OLMo 1): a pre-norm decoder whose LayerNorms have no weights. Absent
// keys have the defaults of transformers 5.23; sizes are required.
type Olmo struct {
	config.Dense
	Clip float64 // clip_qkv: queries, keys and values are limited to [-Clip, Clip]; 0 = they are not
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "olmo",
		Plain:         true,
		Architectures: []string{"OlmoForCausalLM"},
		GGUF:          []gguf.Map{ggufOlmo},
		Docs: arch.Docs{
			Variants: "norms without weights, limited queries, keys and values, biases, tied embeddings",
		},
	}, ParseOlmo)
}

// ParseOlmo parses the config.json of an olmo model.
func ParseOlmo(data []byte) (*Olmo, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "OlmoForCausalLM", Context: 2048, NormEps: 1e-5, EOS: []int32{50279}}
	m := &Olmo{Dense: config.ParseDense(top, o, d, config.RopeOptions{}, config.SiLU...), Clip: o.Limit("clip_qkv", 0)}
	m.NormEps = 1e-5 // whatever the file says
	return config.Done(m, o)
}

func (m *Olmo) Facts() config.Facts { return m.FactsAs("olmo", m.Rope, m.Table()) }

func (m *Olmo) Table() table.Table { return m.Decoder().Table("olmo") }

func (m *Olmo) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norm: decoder.Norm{LayerNorm: true, Unweighed: true},
		Clip: m.Clip,
	}}
}

// ggufOlmo is the mapping of olmo, which has the changes of llama in weights but not in biases.
var ggufOlmo = gguf.Map{
	Architecture: "olmo",
	Limits:       gguf.Limits{Square: true},
	Config:       map[string]any{"model_type": "olmo", "architectures": []string{"OlmoForCausalLM"}},
	Keys:         append(gguf.EpsKeys("layer_norm_eps"), gguf.Clip),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.Weights(gguf.PairedQK), gguf.Names(gguf.Op{},
		"attn_q.bias", "self_attn.q_proj.bias", "attn_k.bias", "self_attn.k_proj.bias"), gguf.Values, gguf.MLP),
	Adjust: gguf.SetBiases,
}
