package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// BailingMoe is the configuration of model type "bailing_moe" (Ling): [Deepseek] with names of its own, and queries,
// keys and values in one tensor. Absent keys have the defaults of its publisher's configuration_bailing_moe.py; sizes
// are required.
type BailingMoe struct {
	config.Dense
	Mixture config.Mixture
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "bailing_moe",
		Plain:         true,
		Architectures: []string{"BailingMoeForCausalLM"},
		Published:     table.Published{Experts: table.PerExpert},
		Docs: arch.Docs{
			Variants: "Ling: fused projections, shared experts, biases",
			Rules:    "generic, also for experts",
			Code:     equals("qwen2_moe"),
		},
	}, ParseBailingMoe)
}

// ParseBailingMoe parses the config.json of a bailing_moe model.
func ParseBailingMoe(data []byte) (*BailingMoe, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &BailingMoe{Dense: config.ParseDense(top, o, config.Defaults{
		Class: "BailingMoeForCausalLM", Context: 16384, NormEps: 1e-5, EOS: []int32{126081},
	}, config.RopeOptions{}, config.SiLU...)}
	m.AttentionBias, m.OutputBias = o.Bool("use_qkv_bias", false), o.Bool("use_bias", false)
	parseShared(&m.Mixture, o, m.Common, "num_shared_experts")
	m.Mixture.Experts.NormTopK = o.Bool("norm_topk_prob", true)
	o.MustBe(false, "norm_head", "norm_softmax", "multi_gate", "use_sliding_window")
	// Ling 2 has these keys, and a type of its own.
	o.MustBe(false, "use_qk_norm", "moe_router_enable_expert_bias")
	if f := o.String("score_function", "softmax"); f != "softmax" {
		o.Fail("score_function", `be "softmax"`)
	}
	if o.Above("routed_scaling_factor", 1, 0) != 1 {
		o.Fail("routed_scaling_factor", "be 1")
	}
	if o.Integer("n_group", 1, 0, config.MaxWidth) > 1 {
		o.Fail("n_group", "be 1")
	}
	return config.Done(m, o)
}

func (m *BailingMoe) Facts() config.Facts { return m.FactsAs("bailing_moe", m.Rope, m.Table()) }

// bailingNames are the published names of a table's tensors.
var bailingNames = []string{
	"embed_tokens.", "word_embeddings.", "self_attn.q_proj.", "attention.query_key_value.", "self_attn.k_proj.",
	"attention.query_key_value.", "self_attn.v_proj.", "attention.query_key_value.", "self_attn.o_proj.",
	"attention.dense.",
}

func (m *BailingMoe) Table() table.Table {
	t := m.Decoder().Table("bailing_moe")
	t.PublishedAs(table.AsPublished, bailingNames, m.JoinedQKV())
	return t
}

func (m *BailingMoe) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture}
}
