package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// MiniMaxM2 is the configuration of model type "minimax_m2": a pre-norm decoder with norms of whole rows of queries and
// keys, a rope that rotates a part of each head, and experts of a sigmoid router in every layer. Absent keys have the
// defaults of transformers 5.23; sizes are required.
type MiniMaxM2 struct {
	config.Dense
	Mixture config.Mixture
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "minimax_m2",
		Plain:         true,
		Architectures: []string{"MiniMaxM2ForCausalLM"},
		GGUF:          []gguf.Map{ggufMiniMaxM2},
		Published: table.Published{
			Experts:     table.PerExpert,
			HuggingFace: slices.Concat(minimaxBias, table.BlockSparse[1]),
			MLX:         slices.Concat(minimaxBias, table.BlockSparse[0]),
		},
		Idle: []arch.Idle{
			{Why: "another key of the type says it", Keys: []string{"rotary_dim"}},
		},
		Fixed: []arch.Fixed{
			{Key: "qk_norm_type", Values: []string{`"per_layer"`}},
			{Key: "shared_intermediate_size", Values: []string{"0"}},
		},
		Docs: arch.Docs{
			Variants: "experts named `w1` to `w3`, partial rope by `rotary_dim` or `partial_rotary_factor`",
			Rules:    "generic, also for experts",
		},
	}, ParseMiniMaxM2)
}

// ParseMiniMaxM2 parses the config.json of a minimax_m2 model.
func ParseMiniMaxM2(data []byte) (*MiniMaxM2, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	o = config.RotaryDim(o, 128)
	m := &MiniMaxM2{Dense: config.ParseDecoder(top, o, config.Defaults{
		Class: "MiniMaxM2ForCausalLM", KVHeads: 8, HeadDim: 128, Context: 196608, NormEps: 1e-6, BOS: []int32{200034},
		EOS: []int32{200020},
	}, config.RopeOptions{Theta: 5e6, Partial: 1})}
	m.AttentionBias, m.OutputBias = false, false
	x := &m.Mixture
	x.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 256, PerToken: 8}, "intermediate_size")
	x.Experts.NormTopK = true
	x.Router = config.Router{Sigmoid: true, Correction: true, Float32: true}
	if f := o.String("scoring_func", "sigmoid"); f != "sigmoid" {
		o.Fail("scoring_func", `be "sigmoid"`)
	}
	if o.Has("use_qk_norm") && !o.Bool("use_qk_norm", true) {
		o.Fail("use_qk_norm", "be true")
	}
	return config.Done(m, o)
}

func (m *MiniMaxM2) Facts() config.Facts { return m.FactsAs("minimax_m2", m.Rope, m.Table()) }

func (m *MiniMaxM2) Table() table.Table {
	t := m.Decoder().Table("minimax_m2")
	const bias = "e_score_correction_bias"
	t.Also(append([][]string{
		{".mlp.gate." + bias, ".block_sparse_moe." + bias}, {".mlp.gate." + bias, ".mlp." + bias},
	}, table.BlockSparse...)...)
	return t
}

func (m *MiniMaxM2) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		HeadNorms: decoder.HeadNorms{Q: "q_norm", K: "k_norm", Over: decoder.Row},
	}}
}

// ggufMiniMaxM2 is the mapping of minimax_m2.
var ggufMiniMaxM2 = gguf.Map{
	Architecture: "minimax-m2",
	Limits:       gguf.Limits{OwnHead: true},
	Config: map[string]any{
		"model_type": "minimax_m2", "architectures": []string{"MiniMaxM2ForCausalLM"},
	},
	Keys: gguf.CountKeys("num_local_experts",
		gguf.Key{Key: "expert_feed_forward_length", To: "intermediate_size", Field: "Experts.Intermediate", Optional: true}),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.PreNorms, gguf.MoE, gguf.SharedExperts,
		gguf.HeadNorms),
	Adjust: func(c map[string]any, f gguf.File) error { return gguf.SetPartial(c, "minimax-m2", f) },
}

// minimaxBias are the published names of tensors, after those of the table.
var minimaxBias = []string{".mlp.gate.e_score_correction_bias", ".block_sparse_moe.e_score_correction_bias"}
