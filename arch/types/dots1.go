package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Dots1 is the configuration of model type "dots1" (dots.llm1): a pre-norm decoder with norms of queries and keys,
// experts of a sigmoid router, shared experts and dense first layers. Absent keys have the defaults of transformers
// 5.23; sizes are required.
type Dots1 struct {
	config.Dense
	Mixture config.Mixture
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "dots1",
		Plain:         true,
		Architectures: []string{"Dots1ForCausalLM"},
		GGUF:          []gguf.Map{ggufDots1},
		Published:     table.Published{Experts: table.PerExpert, MLX: table.ExpertsOfMLX},
		Idle: []arch.Idle{
			{Why: "it needs use_sliding_window", Keys: []string{"max_window_layers", "sliding_window"}},
		},
		Docs: arch.Docs{
			Variants: "groups of experts, shared experts, dense first layers, sliding windows, biases",
			Rules:    "generic, also for experts",
		},
	}, ParseDots1)
}

// ParseDots1 parses the config.json of a dots1 model.
func ParseDots1(data []byte) (*Dots1, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Dots1{Dense: config.ParseDecoder(top, o, config.Defaults{
		Class: "Dots1ForCausalLM", KVHeads: 32, Context: 2048, NormEps: 1e-6,
	}, config.RopeOptions{})}
	m.Intermediate = o.Integer("intermediate_size", 10944, 1, config.MaxWidth)
	m.Mixture.ReadGrouped(o, m.Common, config.MixtureDefaults{Width: 1408})
	if m.Mixture.Shared == 0 {
		o.Missing("n_shared_experts")
	}
	m.Mixture.ReadDense(o, 0)
	first := o.Integer("max_window_layers", 62, 0, config.MaxLayers)
	kinds := o.Words("layer_types", m.Layers, config.FullAttention, config.SlidingAttention)
	sliding := make([]bool, m.Layers)
	for i := range sliding {
		sliding[i] = i >= first
		if kinds != nil {
			sliding[i] = kinds[i] == config.SlidingAttention
		}
	}
	m.Slide(o.Window("sliding_window", 4096), sliding)
	return config.Done(m, o)
}

func (m *Dots1) Facts() config.Facts { return m.FactsAs("dots1", m.Rope, m.Table()) }

func (m *Dots1) Table() table.Table {
	t := m.Decoder().Table("dots1")
	t.StacksAsFused()
	return t
}

func (m *Dots1) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{HeadNorms: decoder.QK}}
}

// ggufDots1 is the mapping of dots1. llama.cpp has no window for it.
var ggufDots1 = gguf.Map{
	Architecture: "dots1",
	Limits:       gguf.Limits{OwnHead: true},
	Config: map[string]any{
		"model_type": "dots1", "architectures": []string{"Dots1ForCausalLM"}, "sliding_window": nil,
	},
	Keys: gguf.GroupedKeys("n_routed_experts", "n_shared_experts"),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.MLP, gguf.MoE, gguf.SharedExperts,
		gguf.HeadNorms,
		gguf.PreNorms),
	Adjust: gguf.SetBiases,
	Refuse: func(m gguf.Model) string {
		if c := config.CommonOf(m); c.KVHeads != c.Heads {
			return "has as many key heads as query heads"
		}
		return ""
	},
}
