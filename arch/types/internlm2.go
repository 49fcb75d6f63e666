package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// InternLM2 is the configuration of model type "internlm2" (InternLM2, InternLM2.5): Llama with names of its own. In
// one tensor, each key and value head follows the query heads that read it. Absent keys have the defaults of its
// publisher's configuration_internlm2.py; sizes are required.
type InternLM2 struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "internlm2",
		Plain:         true,
		Architectures: []string{"InternLM2ForCausalLM"},
		Docs: arch.Docs{
			Variants: "InternLM2, InternLM2.5: fused projections, dynamic rope, biases, tied embeddings",
			Code:     equals("llama"),
		},
	}, ParseInternLM2)
}

// ParseInternLM2 parses the config.json of an internlm2 model.
func ParseInternLM2(data []byte) (*InternLM2, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &InternLM2{config.ParseDense(top, o, config.Defaults{
		Class: "InternLM2ForCausalLM", Context: 2048, NormEps: 1e-6, BOS: []int32{1}, EOS: []int32{2},
	}, config.RopeOptions{Types: []config.RopeType{config.RopeDefault, config.RopeLinear,
		config.RopeDynamic}}, config.SiLU...)}
	m.AttentionBias = o.Bool("bias", true)
	m.OutputBias = m.AttentionBias
	return config.Done(m, o)
}

func (m *InternLM2) Facts() config.Facts { return m.FactsAs("internlm2", m.Rope, m.Table()) }

// internLM2Names are the published names of a table's tensors.
var internLM2Names = []string{
	"embed_tokens.", "tok_embeddings.", "lm_head.", "output.", "input_layernorm.", "attention_norm.",
	"post_attention_layernorm.", "ffn_norm.", "self_attn.q_proj.", "attention.wqkv.", "self_attn.k_proj.",
	"attention.wqkv.", "self_attn.v_proj.", "attention.wqkv.", "self_attn.o_proj.", "attention.wo.", "mlp.gate_proj.",
	"feed_forward.w1.", "mlp.up_proj.", "feed_forward.w3.", "mlp.down_proj.", "feed_forward.w2.",
}

func (m *InternLM2) Table() table.Table {
	t := m.Decoder().Table("internlm2")
	t.PublishedAs(table.AsPublished, internLM2Names, m.GroupedQKV())
	return t
}

func (m *InternLM2) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense}
}
