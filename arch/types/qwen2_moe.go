package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Qwen2Moe is the configuration of model type "qwen2_moe": [Qwen2] with experts in some or all layers, and a shared
// expert whose output a gate weights. Absent keys have the defaults of transformers 5.23; sizes are required.
type Qwen2Moe struct {
	config.Dense
	Mixture config.Mixture
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "qwen2_moe",
		Plain:         true,
		Architectures: []string{"Qwen2MoeForCausalLM"},
		GGUF:          []gguf.Map{ggufQwen2Moe},
		Published:     table.Published{Experts: table.PerExpert},
		Idle: []arch.Idle{
			{Why: "it needs use_sliding_window", Keys: []string{"max_window_layers", "sliding_window"}},
		},
		Docs: arch.Docs{
			Variants: "shared experts with a gate, stacked, fused or separate experts, dense layers in between, sliding windows",
			Rules:    "generic, also for experts",
		},
	}, ParseQwen2Moe)
}

// ParseQwen2Moe parses the config.json of a qwen2_moe model.
func ParseQwen2Moe(data []byte) (*Qwen2Moe, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Qwen2Moe{Dense: config.ParseDecoder(top, o, config.Defaults{
		Class: "Qwen2MoeForCausalLM", KVHeads: 16, Context: 32768, NormEps: 1e-6,
	}, config.RopeOptions{})}
	m.AttentionBias, m.OutputBias = o.Bool("qkv_bias", true), false
	m.Intermediate = o.Integer("intermediate_size", 5632, 1, config.MaxWidth)
	x := &m.Mixture
	x.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 60, PerToken: 4, Width: 1408}, "moe_intermediate_size")
	_, x.Sparse = config.ParseSparse(o, m.Layers, x.Experts.Count)
	x.Shared, x.SharedGate = o.Integer("shared_expert_intermediate_size", 5632, 1, config.MaxWidth), true
	if o.Bool("use_sliding_window", false) {
		m.Slide(o.Window("sliding_window", 4096), alternate(o, m.Layers))
	}
	return config.Done(m, o)
}

// alternate returns which layers slide: those of layer_types, or every other one below max_window_layers.
func alternate(o config.Object, layers int) []bool {
	kinds := o.Words("layer_types", layers, config.FullAttention, config.SlidingAttention)
	below := o.Integer("max_window_layers", 28, 0, config.MaxLayers)
	sliding := make([]bool, layers)
	for i := range sliding {
		sliding[i] = i%2 == 0 && i < below
		if kinds != nil {
			sliding[i] = kinds[i] == config.SlidingAttention
		}
	}
	return sliding
}

func (m *Qwen2Moe) Facts() config.Facts { return m.FactsAs("qwen2_moe", m.Rope, m.Table()) }

func (m *Qwen2Moe) Table() table.Table { return m.Decoder().Table("qwen2_moe") }

func (m *Qwen2Moe) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture}
}

// ggufQwen2Moe is the mapping of qwen2_moe. llama.cpp does not normalize the weights of the experts.
var ggufQwen2Moe = gguf.Map{
	Architecture: "qwen2moe",
	Limits:       gguf.Limits{Square: true, OwnHead: true},
	Config: map[string]any{
		"model_type": "qwen2_moe", "architectures": []string{"Qwen2MoeForCausalLM"}, "use_sliding_window": false,
		"norm_topk_prob": false,
	},
	Keys: gguf.CountKeys("num_experts",
		gguf.Key{
			Key: "expert_feed_forward_length", To: "moe_intermediate_size", Field: "Experts.Intermediate", Optional: true,
		},
		gguf.Key{
			Key: "expert_shared_feed_forward_length", To: "shared_expert_intermediate_size", Field: "Shared", Optional: true,
		}),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.MLP, gguf.PreNorms, gguf.MoE,
		gguf.Names(gguf.Op{},
			"ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight",
			"ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight",
			"ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight",
			"ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight")),
	Adjust: func(c map[string]any, f gguf.File) error {
		_, c["qkv_bias"] = f.Shape("blk.0.attn_q.bias")
		return gguf.SetDense(c, f)
	},
}
