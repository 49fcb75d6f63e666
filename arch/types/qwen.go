package types

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// Qwen is the configuration of model type "qwen" (the first Qwen): a pre-norm decoder with biases of queries, keys and
// values, which are published as one tensor. Absent keys have the defaults of its publisher's configuration_qwen.py;
// sizes are required.
type Qwen struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "qwen",
		Plain:         true,
		Architectures: []string{"QWenLMHeadModel"},
		Idle: []arch.Idle{
			{Why: "the context ends where it begins", Keys: []string{"use_logn_attn"}},
		},
		Fixed: []arch.Fixed{
			{Key: "scale_attn_weights", Values: []string{"true"}},
			{Key: "activation", Values: []string{`"swiglu"`}},
			{Key: "pos_emb", Values: []string{`"rotary"`}},
		},
		Docs: arch.Docs{
			Variants: "fused projections; texts up to `seq_length`, beyond which the rope or the scale is another",
			Code:     equals("qwen2"),
		},
	}, ParseQwen)
}

// ParseQwen parses the config.json of a qwen model. Beyond seq_length, use_dynamic_ntk replaces the rope of the whole
// text and use_logn_attn scales queries. The context of such a model ends there.
func ParseQwen(data []byte) (*Qwen, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	o = o.Renamed("hidden_size", "n_embd", "num_hidden_layers", "n_layer", "num_attention_heads", "n_head",
		"max_position_embeddings", "n_positions", "intermediate_size", "ffn_hidden_size", "rms_norm_eps",
		"layer_norm_epsilon", "rope_theta", "rotary_emb_base", "partial_rotary_factor", "rotary_pct", "head_dim",
		"kv_channels")
	delete(o.Keys, "rope_scaling") // which its code does not read
	m := &Qwen{config.ParseDense(top, o, config.Defaults{
		Class: "QWenLMHeadModel", Context: 8192, NormEps: 1e-6, BOS: []int32{151643}, EOS: []int32{151643},
	}, config.RopeOptions{Partial: 1}, config.SiLU...)}
	m.Prefix, m.AttentionBias = "transformer.", true
	m.OutputBias = !o.Bool("no_bias", true)
	m.MLPBias = m.OutputBias
	if m.Intermediate%2 != 0 {
		o.Fail("intermediate_size", "be even: it is the width of gate and up together")
	}
	m.Intermediate /= 2
	if m.KVHeads != m.Heads {
		o.Fail("num_key_value_heads", "be absent")
	}
	if m.QueryWidth() != int64(m.Hidden) {
		o.Fail("head_dim", fmt.Sprintf("be hidden_size/num_attention_heads = %d", m.Hidden/m.Heads))
	}
	if o.Bool("use_dynamic_ntk", true) || o.Bool("use_logn_attn", true) {
		m.Context = min(m.Context, o.Integer("seq_length", 8192, 1, config.MaxContext))
	}
	return config.Done(m, o)
}

func (m *Qwen) Facts() config.Facts { return m.FactsAs("qwen", m.Rope, m.Table()) }

// qwenNames are the published names of a table's tensors.
var qwenNames = []string{
	"transformer.norm.", "transformer.ln_f.", "embed_tokens.", "wte.", "layers.", "h.", "input_layernorm.", "ln_1.",
	"post_attention_layernorm.", "ln_2.", "self_attn.q_proj.", "attn.c_attn.", "self_attn.k_proj.", "attn.c_attn.",
	"self_attn.v_proj.", "attn.c_attn.", "self_attn.o_proj.", "attn.c_proj.", "mlp.gate_proj.", "mlp.w2.",
	"mlp.up_proj.", "mlp.w1.", "mlp.down_proj.", "mlp.c_proj.",
}

func (m *Qwen) Table() table.Table {
	t := m.Decoder().Table("qwen")
	t.PublishedAs(table.AsPublished, qwenNames, m.JoinedQKV())
	t.Drop(table.InvFreq, m.Prefix+"rotary_emb.inv_freq")
	t.Drop("a mask that follows from positions", m.Prefix+"h.*.attn.masked_bias")
	return t
}

func (m *Qwen) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense}
}
