package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Olmo2 is the configuration of model type "olmo2": norms after attention and MLP instead of before them, and norms of
// queries and keys over all heads of a row. Absent keys have the defaults of transformers 5.23; sizes are required.
type Olmo2 struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "olmo2",
		Plain:         true,
		Architectures: []string{"Olmo2ForCausalLM"},
		GGUF:          []gguf.Map{ggufOlmo2},
		Docs:          arch.Docs{Variants: "biases, tied embeddings"},
	}, ParseOlmo2)
}

// ParseOlmo2 parses the config.json of an olmo2 model.
func ParseOlmo2(data []byte) (*Olmo2, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "Olmo2ForCausalLM", Context: 2048, NormEps: 1e-5, EOS: []int32{50279}}
	return config.Done(&Olmo2{config.ParseDense(top, o, d, config.RopeOptions{}, config.SiLU...)}, o)
}

func (m *Olmo2) Facts() config.Facts { return m.FactsAs("olmo2", m.Rope, m.Table()) }

func (m *Olmo2) Table() table.Table { return m.Decoder().Table("olmo2") }

func (m *Olmo2) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		HeadNorms: decoder.HeadNorms{Q: "q_norm", K: "k_norm", Over: decoder.Row},
		Norms:     decoder.After,
	}}
}

// ggufOlmo2 is the mapping of olmo2, and of olmo3, whose files have a window.
var ggufOlmo2 = gguf.Map{
	Architecture: "olmo2",
	Limits:       gguf.Limits{Square: true, OwnHead: true},
	Config:       map[string]any{"model_type": "olmo2", "architectures": []string{"Olmo2ForCausalLM"}},
	Keys: gguf.Keys(
		gguf.Key{Key: "attention.sliding_window", To: "sliding_window", Field: "Window", Optional: true}),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.MLP, gguf.Names(gguf.Op{},
		"attn_q_norm.weight", "self_attn.q_norm.weight", "attn_k_norm.weight", "self_attn.k_norm.weight",
		"post_attention_norm.weight", "post_attention_layernorm.weight",
		"post_ffw_norm.weight", "post_feedforward_layernorm.weight")),
	Also: func(m gguf.Model) []gguf.Pair {
		if q, ok := m.(*Olmo3); ok && q.Window > 0 {
			return []gguf.Pair{{Key: "rope.freq_base_swa", Value: float32(q.SlidingRope.Theta)}}
		}
		return nil
	},
	Adjust: func(c map[string]any, f gguf.File) error {
		if err := gguf.SetBiases(c, f); err != nil {
			return err
		}
		window, ok := f.Value("olmo2.attention.sliding_window")
		if !ok {
			return nil
		}
		c["model_type"], c["architectures"], c["sliding_window"] = "olmo3", []string{"Olmo3ForCausalLM"}, window
		gguf.SetSliding(c, "olmo2", f)
		return nil
	},
}
