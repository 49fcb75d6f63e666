package arch

// DeepseekV2 is the configuration of model type "deepseek_v2" (DeepSeek V2, V2 Lite and V2.5): latent attention, and
// experts that a softmax router chooses, of all or by groups. Absent keys have the defaults of transformers 5.23; sizes
// are required.
type DeepseekV2 struct{ LatentDecoder }

func init() {
	register(Arch{
		ModelType:     "deepseek_v2",
		Architectures: []string{"DeepseekV2ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseDeepseekV2(config) },
		GGUF:          []GGUF{ggufDeepseek2},
		Docs: Docs{
			Variants: "low-rank or single query projection, groups of experts, shared experts, dense first layers, yarn, biases",
			Rules:    "generic, also for experts",
		},
	})
}

// ParseDeepseekV2 parses the config.json of a deepseek_v2 model.
func ParseDeepseekV2(config []byte) (*DeepseekV2, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &DeepseekV2{parseLatent(top, o, commonDefaults{
		class: "DeepseekV2ForCausalLM", ctx: 2048, eps: 1e-6, bos: []int32{1}, eos: []int32{2},
	}, latentDefaults{query: 1536, kv: 512, nope: 128, rope: 64, value: 128}, ropeOptions{})}
	m.MLPBias = o.boolean("mlp_bias", false)
	m.Mixture.parseExperts(o, m.Common, mixtureDefaults{count: 64, width: 1407}, "moe_intermediate_size")
	m.Mixture.Router = Router{Float32: true, Scaling: o.above("routed_scaling_factor", 1, 0)}
	m.Mixture.Shared = o.integer("n_shared_experts", 2, 0, 64) * m.Mixture.Experts.Intermediate
	m.Mixture.SharedBias = m.MLPBias
	m.groups(o)
	m.Mixture.parseDense(o, 0)
	o.checkLayerFrequency()
	if m.Mixture.Experts.NormTopK {
		// transformers ignores the key; the publisher's code then leaves out routed_scaling_factor.
		o.fail("norm_topk_prob", "be false")
	}
	if f := o.str("scoring_func", "softmax"); f != "softmax" {
		o.fail("scoring_func", `be "softmax"`)
	}
	return parsed(m, o)
}

// groups reads how the router chooses experts: of all, or of the groups whose best expert has a high score.
func (m *DeepseekV2) groups(o object) {
	r := &m.Mixture.Router
	switch o.str("topk_method", "greedy") {
	case "greedy":
		r.Groups, r.TopGroups = 1, 1
	case "group_limited_greedy":
		r.Groups, r.TopGroups = o.required("n_group", 1, maxExperts), o.required("topk_group", 1, maxExperts)
		r.GroupBest = 1
	default:
		r.Groups, r.TopGroups = 1, 1
		o.fail("topk_method", `be "greedy" or "group_limited_greedy"`)
	}
	r.check(o, m.Mixture.Experts)
}

// Facts implements [Model].
func (m *DeepseekV2) Facts() Facts { return m.facts("deepseek_v2", m.Rope, m.Table()) }

// Table implements [Model].
func (m *DeepseekV2) Table() Table { return m.table("deepseek_v2") }
