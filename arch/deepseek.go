package arch

// Deepseek is the configuration of model type "deepseek" (DeepSeekMoE): Llama with experts in all layers but the first
// ones, and shared experts. Absent keys have the defaults of its publisher's configuration_deepseek.py; sizes are
// required.
type Deepseek struct {
	Dense
	Mixture Mixture
}

func init() {
	register(Arch{
		ModelType:     "deepseek",
		Plain:         true,
		Architectures: []string{"DeepseekForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseDeepseek(config) },
		Docs: Docs{
			Variants: "DeepSeekMoE: dense first layers, shared experts, stacked, fused or separate experts",
			Rules:    "generic, also for experts",
			Code:     equals("qwen2_moe"),
		},
	})
}

// ParseDeepseek parses the config.json of a deepseek model.
func ParseDeepseek(config []byte) (*Deepseek, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Deepseek{Dense: parseDense(top, o, commonDefaults{
		class: "DeepseekForCausalLM", ctx: 2048, eps: 1e-6, bos: []int32{100000}, eos: []int32{100001},
	}, ropeOptions{}, silu...)}
	m.Mixture.parseShared(o, m.Common, "n_shared_experts")
	every := o.integer("moe_layer_freq", 1, 1, maxLayers)
	for i := range m.Mixture.Sparse {
		m.Mixture.Sparse[i] = m.Mixture.Sparse[i] && i%every == 0
	}
	if f := o.str("scoring_func", "softmax"); f != "softmax" {
		o.fail("scoring_func", `be "softmax"`)
	}
	return parsed(m, o)
}

// parseShared reads the keys of a router with a softmax, and of shared experts, whose number is at a key.
func (m *Mixture) parseShared(o object, c Common, shared string) {
	m.parseExperts(o, c, mixtureDefaults{}, "moe_intermediate_size")
	m.parseDense(o, 0)
	m.Shared = o.integer(shared, 0, 0, 64) * m.Experts.Intermediate
}

// Facts implements [Model].
func (m *Deepseek) Facts() Facts { return m.facts("deepseek", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Deepseek) Table() Table { return m.decodes("deepseek", m.Mixture, nil) }

// Decoder implements [Described].
func (m *Deepseek) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Mixture: &m.Mixture}
}
