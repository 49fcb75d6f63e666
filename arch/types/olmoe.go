package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Olmoe is the configuration of model type "olmoe": a pre-norm decoder with experts in every layer and norms of whole
// rows of queries and keys. Absent keys have the defaults of transformers 5.23; sizes are required.
type Olmoe struct {
	config.Dense
	Mixture config.Mixture
	Clip    float64 // limit of the size of queries, keys and values; 0 = none
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "olmoe",
		Plain:         true,
		Architectures: []string{"OlmoeForCausalLM"},
		GGUF:          []gguf.Map{ggufOlmoe},
		Published:     table.Published{Experts: table.PerExpert},
		Idle: []arch.Idle{
			{Why: "the reference has no sliding layers", Keys: []string{"sliding_window"}},
		},
		Docs: arch.Docs{
			Variants: "stacked, fused or separate experts, clipped queries, keys and values, biases",
			Rules:    "generic, also for experts",
		},
	}, ParseOlmoe)
}

// ParseOlmoe parses the config.json of an olmoe model.
func ParseOlmoe(data []byte) (*Olmoe, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "OlmoeForCausalLM", Context: 4096, NormEps: 1e-5, EOS: []int32{50279}}
	m := &Olmoe{Dense: config.ParseDecoder(top, o, d, config.RopeOptions{}), Clip: o.Limit("clip_qkv", 0)}
	m.Mixture.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 64, PerToken: 8}, "intermediate_size")
	return config.Done(m, o)
}

func (m *Olmoe) Facts() config.Facts { return m.FactsAs("olmoe", m.Rope, m.Table()) }

func (m *Olmoe) Table() table.Table { return m.Decoder().Table("olmoe") }

func (m *Olmoe) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		HeadNorms: decoder.HeadNorms{Q: "q_norm", K: "k_norm", Over: decoder.Row},
		Clip:      m.Clip,
	}}
}

// ggufOlmoe is the mapping of olmoe. llama.cpp does not normalize the weights of the experts.
var ggufOlmoe = gguf.Map{
	Architecture: "olmoe",
	Limits:       gguf.Limits{Square: true, OwnHead: true},
	Config: map[string]any{
		"model_type": "olmoe", "architectures": []string{"OlmoeForCausalLM"}, "norm_topk_prob": false,
	},
	Keys:    gguf.CountKeys("num_experts", gguf.Clip),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.PreNorms, gguf.MoE, gguf.HeadNorms),
	Adjust:  gguf.SetBiases,
}
