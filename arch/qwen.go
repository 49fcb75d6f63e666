package arch

import "fmt"

// Qwen is the configuration of model type "qwen" (the first Qwen): a pre-norm decoder with biases of queries, keys and
// values, which are published as one tensor. Absent keys have the defaults of its publisher's configuration_qwen.py;
// sizes are required.
type Qwen struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "qwen",
		Plain:         true,
		Architectures: []string{"QWenLMHeadModel"},
		Parse:         func(config []byte) (Model, error) { return ParseQwen(config) },
		Docs: Docs{
			Variants: "fused projections; texts up to `seq_length`, beyond which the rope or the scale is another",
			Code:     equals("qwen2"),
		},
	})
}

// ParseQwen parses the config.json of a qwen model. Beyond seq_length, use_dynamic_ntk replaces the rope of the whole
// text and use_logn_attn scales queries. The context of such a model ends there.
func ParseQwen(config []byte) (*Qwen, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	o = o.called("hidden_size", "n_embd", "num_hidden_layers", "n_layer", "num_attention_heads", "n_head",
		"max_position_embeddings", "n_positions", "intermediate_size", "ffn_hidden_size", "rms_norm_eps",
		"layer_norm_epsilon", "rope_theta", "rotary_emb_base", "partial_rotary_factor", "rotary_pct", "head_dim",
		"kv_channels")
	delete(o.raw, "rope_scaling") // which its code does not read
	m := &Qwen{parseDense(top, o, commonDefaults{
		class: "QWenLMHeadModel", ctx: 8192, eps: 1e-6, bos: []int32{151643}, eos: []int32{151643},
	}, ropeOptions{partial: 1}, silu...)}
	m.Prefix, m.AttentionBias = "transformer.", true
	m.OutputBias = !o.boolean("no_bias", true)
	m.MLPBias = m.OutputBias
	if m.Intermediate%2 != 0 {
		o.fail("intermediate_size", "be even: it is the width of gate and up together")
	}
	m.Intermediate /= 2
	if m.KVHeads != m.Heads {
		o.fail("num_key_value_heads", "be absent")
	}
	if m.queries() != int64(m.Hidden) {
		o.fail("head_dim", fmt.Sprintf("be hidden_size/num_attention_heads = %d", m.Hidden/m.Heads))
	}
	if o.boolean("use_dynamic_ntk", true) || o.boolean("use_logn_attn", true) {
		m.Context = min(m.Context, o.integer("seq_length", 8192, 1, maxContext))
	}
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Qwen) Facts() Facts { return m.facts("qwen", m.Rope, m.Table()) }

// qwenNames are the published names of a table's tensors.
var qwenNames = []string{
	"transformer.norm.", "transformer.ln_f.", "embed_tokens.", "wte.", "layers.", "h.", "input_layernorm.", "ln_1.",
	"post_attention_layernorm.", "ln_2.", "self_attn.q_proj.", "attn.c_attn.", "self_attn.k_proj.", "attn.c_attn.",
	"self_attn.v_proj.", "attn.c_attn.", "self_attn.o_proj.", "attn.c_proj.", "mlp.gate_proj.", "mlp.w2.",
	"mlp.up_proj.", "mlp.w1.", "mlp.down_proj.", "mlp.c_proj.",
}

// Table implements [Model].
func (m *Qwen) Table() Table {
	t := m.preNorm("qwen", false)
	t.publishedAs(asPublished, qwenNames, m.joinedQKV())
	t.drop(dropInvFreq, m.Prefix+"rotary_emb.inv_freq")
	t.drop("a mask that follows from positions", m.Prefix+"h.*.attn.masked_bias")
	return t
}

// Decoder implements [Described].
func (m *Qwen) Decoder() Decoder {
	return Decoder{Dense: &m.Dense}
}
