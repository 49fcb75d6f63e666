package types

import (
	"fmt"
	"math"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// MiniCPM3 is the configuration of model type "minicpm3": latent attention and a dense feed-forward block, with scaled
// embeddings, residuals and logits. Absent keys have the defaults of transformers 5.23; sizes are required.
type MiniCPM3 struct {
	config.LatentDecoder
	EmbeddingScale float64
	ResidualScale  float64 // of the output of each layer's parts
	LogitScale     float64
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "minicpm3",
		Architectures: []string{"MiniCPM3ForCausalLM"},
		GGUF:          []gguf.Map{ggufMiniCPM3},
		Idle: []arch.Idle{
			{Why: "attention has head sizes of its own", Keys: []string{"head_dim"}},
		},
		Docs: arch.Docs{Variants: "low-rank or single query projection, longrope, biases, tied embeddings"},
	}, ParseMiniCPM3)
}

// ParseMiniCPM3 parses the config.json of a minicpm3 model.
func ParseMiniCPM3(data []byte) (*MiniCPM3, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{
		Class: "MiniCPM3ForCausalLM", Context: 32768, NormEps: 1e-5, Tied: true, BOS: []int32{1}, EOS: []int32{2},
	}
	m := &MiniCPM3{
		LatentDecoder: config.ParseLatent(top, o, d, config.LatentDefaults{Query: 768, Kv: 256, Nope: 64, Rope: 32},
			config.RopeOptions{}),
		EmbeddingScale: o.Above("scale_emb", 12, 0),
	}
	if m.Latent.ValueDim == 0 {
		if m.Latent.ValueDim = m.Hidden / m.Heads; m.Latent.ValueDim == 0 {
			o.Fail("hidden_size", "be at least num_attention_heads, since there is no v_head_dim")
		}
	}
	m.Latent.Interleaved = false
	m.MLPBias = o.Bool("mlp_bias", false)
	layers := math.Sqrt(float64(m.Layers))
	depth, base := 1.4, 256
	if o.IsNull("scale_depth") {
		depth = layers
	}
	if o.IsNull("dim_model_base") {
		base = m.Hidden
	}
	m.ResidualScale = o.Above("scale_depth", depth, 0) / layers
	m.LogitScale = float64(o.Integer("dim_model_base", base, 1, config.MaxWidth)) / float64(m.Hidden)
	return config.Done(m, o)
}

func (m *MiniCPM3) Facts() config.Facts { return m.FactsAs("minicpm3", m.Rope, m.Table()) }

func (m *MiniCPM3) Table() table.Table { return m.TableAs("minicpm3") }

// ggufMiniCPM3 is the mapping of minicpm3. llama.cpp has the scales of the published model, and heads of values whose
// sizes sum to the width of the model.
// https://github.com/ggml-org/llama.cpp/blob/master/src/models/minicpm3.cpp
var ggufMiniCPM3 = gguf.Map{
	Architecture: "minicpm3",
	ImportOnly:   true,
	Config: map[string]any{
		"model_type": "minicpm3", "architectures": []string{"MiniCPM3ForCausalLM"},
		"scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256, "q_lora_rank": nil,
	},
	Keys: gguf.Keys(
		gguf.Key{Key: "attention.q_lora_rank", To: "q_lora_rank", Optional: true},
		gguf.Key{Key: "attention.kv_lora_rank", To: "kv_lora_rank"},
		gguf.Key{Key: "rope.dimension_count", To: "qk_rope_head_dim"},
	),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.Latent(), []gguf.Tensor{
		{Name: "rope_factors_short.weight", Why: "its factors are in config.json"},
		{Name: "rope_factors_long.weight", Why: "its factors are in config.json"},
	}),
	Adjust: func(c map[string]any, f gguf.File) error {
		key, err := gguf.Number(c, "head_dim")
		rope, errRope := gguf.Number(c, "qk_rope_head_dim")
		if err != nil || errRope != nil || key <= rope {
			return fmt.Errorf("%w: minicpm3.attention.key_length = %v: want more than rope.dimension_count",
				gguf.ErrMetadata, c["head_dim"])
		}
		c["qk_nope_head_dim"] = key - rope
		delete(c, "head_dim")
		if _, ok := f.Shape("rope_factors_short.weight"); !ok {
			return nil
		}
		return gguf.SetLongRope(c, map[string]any{"original_max_position_embeddings": c["max_position_embeddings"]}, f)
	},
}
