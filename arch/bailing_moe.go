package arch

// BailingMoe is the configuration of model type "bailing_moe" (Ling): [Deepseek] with names of its own, and queries,
// keys and values in one tensor. Absent keys have the defaults of its publisher's configuration_bailing_moe.py; sizes
// are required.
type BailingMoe struct {
	Dense
	Mixture Mixture
}

func init() {
	register(Arch{
		ModelType:     "bailing_moe",
		Plain:         true,
		Architectures: []string{"BailingMoeForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseBailingMoe(config) },
		Docs: Docs{
			Variants: "Ling: fused projections, shared experts, biases",
			Rules:    "generic, also for experts",
			Code:     equals("qwen2_moe"),
		},
	})
}

// ParseBailingMoe parses the config.json of a bailing_moe model.
func ParseBailingMoe(config []byte) (*BailingMoe, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &BailingMoe{Dense: parseDense(top, o, commonDefaults{
		class: "BailingMoeForCausalLM", ctx: 16384, eps: 1e-5, eos: []int32{126081},
	}, ropeOptions{}, silu...)}
	m.AttentionBias, m.OutputBias = o.boolean("use_qkv_bias", false), o.boolean("use_bias", false)
	m.Mixture.parseShared(o, m.Common, "num_shared_experts")
	m.Mixture.Experts.NormTopK = o.boolean("norm_topk_prob", true)
	o.mustBe(false, "norm_head", "norm_softmax", "multi_gate", "use_sliding_window")
	// Ling 2 has these keys, and a type of its own.
	o.mustBe(false, "use_qk_norm", "moe_router_enable_expert_bias")
	if f := o.str("score_function", "softmax"); f != "softmax" {
		o.fail("score_function", `be "softmax"`)
	}
	if o.above("routed_scaling_factor", 1, 0) != 1 {
		o.fail("routed_scaling_factor", "be 1")
	}
	if o.integer("n_group", 1, 0, maxWidth) > 1 {
		o.fail("n_group", "be 1")
	}
	return parsed(m, o)
}

// Facts implements [Model].
func (m *BailingMoe) Facts() Facts { return m.facts("bailing_moe", m.Rope, m.Table()) }

// bailingNames are the published names of a table's tensors.
var bailingNames = []string{
	"embed_tokens.", "word_embeddings.", "self_attn.q_proj.", "attention.query_key_value.", "self_attn.k_proj.",
	"attention.query_key_value.", "self_attn.v_proj.", "attention.query_key_value.", "self_attn.o_proj.",
	"attention.dense.",
}

// Table implements [Model].
func (m *BailingMoe) Table() Table {
	t := m.decodes("bailing_moe", m.Mixture, nil)
	t.publishedAs(asPublished, bailingNames, m.joinedQKV())
	return t
}

// Decoder implements [Described].
func (m *BailingMoe) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Mixture: &m.Mixture}
}
