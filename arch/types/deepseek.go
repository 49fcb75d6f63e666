package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// Deepseek is the configuration of model type "deepseek" (DeepSeekMoE): Llama with experts in all layers but the first
// ones, and shared experts. Absent keys have the defaults of its publisher's configuration_deepseek.py; sizes are
// required.
type Deepseek struct {
	config.Dense
	Mixture config.Mixture
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "deepseek",
		Plain:         true,
		Architectures: []string{"DeepseekForCausalLM"},
		Published:     table.Published{Experts: table.PerExpert},
		Chat:          &arch.Chat{Marks: []string{"deepseek"}, Parser: "deepseek3", Renderer: "deepseek3", Thinks: true},
		Docs: arch.Docs{
			Variants: "DeepSeekMoE: dense first layers, shared experts, stacked, fused or separate experts",
			Rules:    "generic, also for experts",
			Code:     equals("qwen2_moe"),
		},
	}, ParseDeepseek)
}

// ParseDeepseek parses the config.json of a deepseek model.
func ParseDeepseek(data []byte) (*Deepseek, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Deepseek{Dense: config.ParseDense(top, o, config.Defaults{
		Class: "DeepseekForCausalLM", Context: 2048, NormEps: 1e-6, BOS: []int32{100000}, EOS: []int32{100001},
	}, config.RopeOptions{}, config.SiLU...)}
	parseShared(&m.Mixture, o, m.Common, "n_shared_experts")
	every := o.Integer("moe_layer_freq", 1, 1, config.MaxLayers)
	for i := range m.Mixture.Sparse {
		m.Mixture.Sparse[i] = m.Mixture.Sparse[i] && i%every == 0
	}
	if f := o.String("scoring_func", "softmax"); f != "softmax" {
		o.Fail("scoring_func", `be "softmax"`)
	}
	return config.Done(m, o)
}

// parseShared reads the keys of a router with a softmax, and of shared experts, whose number is at a key.
func parseShared(m *config.Mixture, o config.Object, c config.Common, shared string) {
	m.ReadExperts(o, c, config.MixtureDefaults{}, "moe_intermediate_size")
	m.ReadDense(o, 0)
	m.Shared = o.Integer(shared, 0, 0, 64) * m.Experts.Intermediate
}

func (m *Deepseek) Facts() config.Facts { return m.FactsAs("deepseek", m.Rope, m.Table()) }

func (m *Deepseek) Table() table.Table { return m.Decoder().Table("deepseek") }

func (m *Deepseek) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture}
}
