package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

// Qwen3Moe is the configuration of model type "qwen3_moe": [Qwen3] with experts in place of the MLP in some or all
// layers. The router's probabilities are a softmax over all experts. With NormTopK those of the selected experts are
// normalized to sum to 1.
type Qwen3Moe struct {
	config.Common
	Intermediate int // of dense layers
	Activation   string
	Rope         config.Rope
	Window       int // of every layer, as in [Qwen3]; 0 = none
	Experts      config.Experts
	Sparse       []bool // by layer: it has experts
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "qwen3_moe",
		Plain:         true,
		Aliases:       []string{"qwen3_vl_moe", "qwen3_vl_moe_text"},
		Towers:        []string{"qwen3_vl_moe"},
		Architectures: []string{"Qwen3MoeForCausalLM", "Qwen3VLMoeForConditionalGeneration"},
		GGUF:          []gguf.Map{ggufQwen3Moe},
		Published:     table.Published{Experts: table.PerExpert},
		Variants: map[string]table.Published{
			"qwen3_vl_moe":      {},
			"qwen3_vl_moe_text": {},
		},
		Equalizable: true,
		Idle: []arch.Idle{
			{Why: "it needs use_sliding_window", Keys: []string{"max_window_layers", "sliding_window"}},
		},
		Fixed: []arch.Fixed{
			{Key: "shared_expert_intermediate_size", Values: []string{"0"}},
			{Key: "norm_topk_prob", Values: []string{"true"}, As: []string{"qwen3_vl_moe", "qwen3_vl_moe_text"}},
		},
		Defaults: map[string]map[string]string{
			"qwen3_vl_moe": qwen3VLMoeDefaults, "qwen3_vl_moe_text": qwen3VLMoeDefaults,
		},
		Docs: arch.Docs{
			Variants: "stacked, fused (also transposed) or separate experts; dense layers in between; text of Qwen3-VL",
			Rules:    "generic, also for experts",
		},
	}, ParseQwen3Moe)
}

// ParseQwen3Moe parses the config.json of a qwen3_moe model.
func ParseQwen3Moe(data []byte) (*Qwen3Moe, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Qwen3Moe{
		Common: config.ParseCommon(top, o, config.Defaults{Class: "Qwen3MoeForCausalLM", KVHeads: 4, Context: 32768,
			NormEps: 1e-6}),
		Activation: o.Activation("hidden_act", config.SiLU...),
		Experts: config.Experts{
			PerToken:     o.Integer("num_experts_per_tok", 8, 1, config.MaxExperts),
			Intermediate: o.Integer("moe_intermediate_size", 768, 1, config.MaxWidth),
			NormTopK:     o.Bool("norm_topk_prob", false),
		},
	}
	m.Intermediate = o.Integer("intermediate_size", 6144, 1, config.MaxWidth)
	m.Rope = config.ParseRope(o, m.Context, config.RopeOptions{HeadDim: m.HeadDim})
	m.Rope.IgnorePartial(o)
	m.Window, _ = config.ParseWindow(o, m.Layers, 0)
	m.Experts.Count, m.Sparse = config.ParseSparse(o, m.Layers, 128)
	o.CheckExperts("num_experts", m.Experts, m.Hidden)
	if err := o.Failed(); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Qwen3Moe) State() []config.LayerState {
	return m.KVStates(m.Window, func(int) bool { return true })
}

func (m *Qwen3Moe) Facts() config.Facts { return m.FactsAs("qwen3_moe", m.Rope, m.Table()) }

func (m *Qwen3Moe) Rules() precision.Rules { return precision.Generic(m.Layers) }

func (m *Qwen3Moe) Table() table.Table {
	t := m.Decoder().Table("qwen3_moe")
	t.TransposesExperts("", "") // Qwen3-VL is published so
	config.DropTowers(&t, "qwen3_moe")
	return t
}

func (m *Qwen3Moe) Decoder() config.Decoder {
	return config.Decoder{
		Dense:       m.dense(),
		Mixture:     &config.Mixture{Experts: m.Experts, Sparse: m.Sparse},
		Description: decoder.Description{HeadNorms: decoder.QK},
	}
}

func (m *Qwen3Moe) dense() *config.Dense {
	d := &config.Dense{Common: m.Common, Intermediate: m.Intermediate, Activation: m.Activation, Rope: m.Rope}
	d.SlideEverywhere(m.Window)
	return d
}

// ggufQwen3Moe is the mapping of qwen3_moe. llama.cpp normalizes the weights of the experts, whatever a file says.
var ggufQwen3Moe = gguf.Map{
	Architecture: "qwen3moe",
	Config: map[string]any{
		"model_type": "qwen3_moe", "architectures": []string{"Qwen3MoeForCausalLM"}, "use_sliding_window": false,
		"norm_topk_prob": true,
	},
	Keys: gguf.Keys(append(gguf.ExpertKeys,
		gguf.Key{Key: "expert_count", To: "num_experts", Field: "Experts.Count"})...),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), qwen3Norms, gguf.QK, gguf.Values, gguf.MLP, gguf.MoE),
	Adjust: func(c map[string]any, f gguf.File) error {
		_, c["attention_bias"] = f.Shape("blk.0.attn_q.bias")
		return gguf.SetDense(c, f)
	},
}

// qwen3VLMoeDefaults are the values of absent keys where transformers' class differs. A rope_theta beside the
// parameters of the rope is what they lack.
var qwen3VLMoeDefaults = map[string]string{
	"max_position_embeddings": "128000", "rope_theta": "5e5", "intermediate_size": "5632",
	"moe_intermediate_size": "1408", "num_experts_per_tok": "4", "norm_topk_prob": "true",
}
