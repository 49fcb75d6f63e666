package types

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// GraniteMoe is the configuration of model type "granitemoe": [Granite] with experts in every layer. Absent keys have
// the defaults of transformers 5.23; sizes are required.
type GraniteMoe struct {
	Granite
	Mixture config.Mixture
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "granitemoe",
		Plain:         true,
		Architectures: []string{"GraniteMoeForCausalLM"},
		GGUF:          []gguf.Map{ggufGraniteMoe},
		Published: table.Published{
			HuggingFace: []string{
				".mlp.gate.", ".block_sparse_moe.router.layer.",
				".mlp.experts.gate_up_proj", ".block_sparse_moe.input_linear.weight",
				".mlp.experts.down_proj", ".block_sparse_moe.output_linear.weight",
			},
			MLX: []string{".mlp.gate.", ".block_sparse_moe.router.layer.", ".mlp.", ".block_sparse_moe."},
		},
		Docs: arch.Docs{
			Variants: "multipliers of embeddings, scores, residuals and logits; stacked experts; biases; tied embeddings",
			Rules:    "generic, also for experts",
		},
	}, ParseGraniteMoe)
}

// ParseGraniteMoe parses the config.json of a granitemoe model.
func ParseGraniteMoe(data []byte) (*GraniteMoe, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "GraniteMoeForCausalLM", Context: 2048, NormEps: 1e-6, BOS: []int32{1}, EOS: []int32{2}}
	m := &GraniteMoe{Granite: Granite{
		Dense:          config.ParseDecoder(top, o, d, config.RopeOptions{}),
		EmbeddingScale: o.Above("embedding_multiplier", 1, 0),
		AttentionScale: o.Above("attention_multiplier", 1, 0),
		ResidualScale:  o.Above("residual_multiplier", 1, 0),
		LogitDivisor:   o.Above("logits_scaling", 1, 0),
	}}
	m.Mixture.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 8, PerToken: 2}, "intermediate_size")
	m.Mixture.Experts.NormTopK = true
	return config.Done(m, o)
}

func (m *GraniteMoe) Facts() config.Facts { return m.FactsAs("granitemoe", m.Rope, m.Table()) }

func (m *GraniteMoe) Table() table.Table {
	t := m.Decoder().Table("granitemoe")
	const block = ".block_sparse_moe."
	t.Also(
		[]string{
			".mlp.gate.", block + "router.layer.", ".mlp.experts.gate_up_proj", block + "input_linear.weight",
			".mlp.experts.down_proj", block + "output_linear.weight",
		},
		[]string{".mlp.gate.", block + "router.", ".mlp.", block},
	)
	return t
}

func (m *GraniteMoe) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		EmbeddingScale: m.EmbeddingScale,
		AttentionScale: m.AttentionScale,
		ResidualScale:  m.ResidualScale,
		LogitScale:     1 / m.LogitDivisor,
	}}
}

// ggufGraniteMoe is the mapping of granitemoe, which has the changes of llama.
var ggufGraniteMoe = gguf.Map{
	Architecture: "granitemoe",
	Limits:       gguf.Limits{Biases: gguf.AllBiases},
	Config: map[string]any{
		"model_type": "granitemoe", "architectures": []string{"GraniteMoeForCausalLM"},
	},
	Keys: gguf.CountKeys("num_local_experts",
		gguf.Key{Key: "attention.scale", To: "attention_multiplier", Field: "AttentionScale", Optional: true},
		gguf.Key{Key: "embedding_scale", To: "embedding_multiplier", Field: "EmbeddingScale", Optional: true},
		gguf.Key{Key: "residual_scale", To: "residual_multiplier", Field: "ResidualScale", Optional: true},
		gguf.Key{Key: "logit_scale", To: "logits_scaling", Field: "LogitDivisor", Optional: true},
	),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.PairedQK, gguf.Values, gguf.PreNorms, gguf.MoE),
	Adjust: func(c map[string]any, f gguf.File) error {
		if v, ok := f.Value("granitemoe.expert_shared_feed_forward_length"); ok && v != json.Number("0") {
			return fmt.Errorf("granitemoe.expert_shared_feed_forward_length = %v: %w: granitemoe with shared experts",
				gguf.Shown(v), arch.ErrUnknownArchitecture)
		}
		if err := gguf.SetBiases(c, f); err != nil {
			return err
		}
		return gguf.SetFactors(c, f)
	},
}
