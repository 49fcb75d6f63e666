package types

import (
	"encoding/json"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Cohere2Moe is the configuration of model type "cohere2_moe": [Cohere2] with experts in some or all layers. Absent
// keys have the defaults of transformers 5.23; sizes are required.
type Cohere2Moe struct {
	config.Dense
	Mixture    config.Mixture
	LogitScale float64
	RMSNorms   bool   // norms are RMSNorms, not LayerNorms without bias
	Rotates    []bool // by layer: queries and keys are rotated
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "cohere2_moe",
		Plain:         true,
		Architectures: []string{"Cohere2MoeForCausalLM"},
		GGUF:          []gguf.Map{ggufCohere2Moe},
		Published:     table.Published{Experts: table.PerExpert},
		Docs: arch.Docs{
			Variants: "softmax or sigmoid router, shared experts summed or averaged, dense first layers, both kinds of norms",
			Rules:    "generic, also for experts",
		},
	}, ParseCohere2Moe)
}

// ParseCohere2Moe parses the config.json of a cohere2_moe model.
func ParseCohere2Moe(data []byte) (*Cohere2Moe, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Cohere2Moe{
		Dense: config.ParseDecoder(top, o, config.Defaults{
			Class: "Cohere2MoeForCausalLM", HeadDim: 128, Context: 8192, NormEps: 1e-5, Tied: true, BOS: []int32{5},
			EOS: []int32{255001},
		}, config.RopeOptions{}),
		LogitScale: o.Above("logit_scale", 0.0625, 0),
		RMSNorms:   o.Has("rms_norm_eps"),
	}
	if !m.RMSNorms {
		m.NormEps = o.Above("layer_norm_eps", 1e-5, 0)
	}
	x := &m.Mixture
	x.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 8, PerToken: 2, SumToOne: true}, "intermediate_size")
	x.ReadDense(o, 0)
	m.Intermediate = o.Integer("prefix_dense_intermediate_size", x.Experts.Intermediate, 1, config.MaxWidth)
	switch f := o.String("expert_selection_fn", "softmax"); f {
	case "sigmoid":
		x.Router.Sigmoid = true
	case "softmax":
		x.Experts.NormTopK = true
	default:
		o.Fail("expert_selection_fn", `be "softmax" or "sigmoid"`)
	}
	x.Shared = o.Integer("num_shared_experts", 0, 0, 64) * x.Experts.Intermediate
	switch s := o.String("shared_expert_combination_strategy", "average"); s {
	case "average":
		if x.Shared > 0 {
			x.Router.Scaling, x.SharedScale = 0.5, 0.5
		}
	case "sum":
	default:
		o.Fail("shared_expert_combination_strategy", `be "average" or "sum"`)
	}
	m.layers(o)
	return config.Done(m, o)
}

// layers reads which layers slide and which have a rope: sliding ones and, unless they have a pattern of their own, the
// dense ones.
func (m *Cohere2Moe) layers(o config.Object) {
	first := o.Integer("prefix_dense_sliding_window_pattern", 1, 1, config.MaxLayers)
	every := o.Integer("sliding_window_pattern", 4, 1, config.MaxLayers)
	dense := min(o.Integer("first_k_dense_replace", 0, 0, config.MaxLayers), m.Layers)
	kinds := o.Words("layer_types", m.Layers, config.FullAttention, config.SlidingAttention)
	window := o.Window("sliding_window", 4096)
	sliding := make([]bool, m.Layers)
	m.Rotates = make([]bool, m.Layers)
	for i := range sliding {
		switch {
		case kinds != nil:
			sliding[i] = kinds[i] == config.SlidingAttention
		case i < dense:
			sliding[i] = (i+1)%first != 0
		default:
			sliding[i] = (i-dense+1)%every != 0
		}
		m.Rotates[i] = sliding[i] && window > 0 || !m.Mixture.Sparse[i] && first == 1
	}
	m.Slide(window, sliding)
}

func (m *Cohere2Moe) Facts() config.Facts { return m.FactsAs("cohere2_moe", m.Rope, m.Table()) }

func (m *Cohere2Moe) Table() table.Table { return m.Decoder().Table("cohere2_moe") }

func (m *Cohere2Moe) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		Norm:        decoder.Norm{LayerNorm: !m.RMSNorms},
		Norms:       decoder.BeforeShared,
		Parallel:    true,
		Interleaved: true,
		RopeLayers:  m.Rotates,
		LogitScale:  m.LogitScale,
	}}
}

// ggufCohere2Moe is the mapping of cohere2_moe.
var ggufCohere2Moe = gguf.Map{
	Architecture: "cohere2moe",
	Config: map[string]any{
		"model_type": "cohere2_moe", "architectures": []string{"Cohere2MoeForCausalLM"},
	},
	Keys: append(gguf.EpsKeys("layer_norm_eps"),
		gguf.Key{Key: "attention.layer_norm_rms_epsilon", To: "rms_norm_eps", Optional: true},
		gguf.Key{Key: "expert_count", To: "num_experts", Field: "Experts.Count"},
		gguf.Key{Key: "expert_used_count", To: "num_experts_per_tok", Field: "Experts.PerToken"},
		gguf.Key{Key: "expert_feed_forward_length", To: "intermediate_size", Field: "Experts.Intermediate"},
		gguf.Key{Key: "expert_shared_count", To: "num_shared_experts", Optional: true},
		gguf.Key{Key: "expert_weights_norm", To: "norm_topk_prob", Field: "Experts.NormTopK", Optional: true},
		gguf.Key{Key: "feed_forward_length", To: "prefix_dense_intermediate_size", Field: "Intermediate", Optional: true},
		gguf.Key{Key: "leading_dense_block_count", To: "first_k_dense_replace", Optional: true},
		gguf.Key{Key: "attention.sliding_window", To: "sliding_window", Field: "Window"},
		gguf.LogitScale),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.MLP, gguf.MoE, gguf.SharedExperts,
		gguf.Names(gguf.Op{}, "attn_norm.weight", "input_layernorm.weight")),
	Adjust: func(c map[string]any, f gguf.File) error {
		const architecture = "cohere2moe"
		if v, _ := f.Value(architecture + ".expert_gating_func"); v == json.Number("2") {
			c["expert_selection_fn"] = "sigmoid"
		}
		gguf.SetSliding(c, architecture, f)
		if err := gguf.SetBiases(c, f); err != nil {
			return err
		}
		return gguf.SetSparse(c, f)
	},
}
