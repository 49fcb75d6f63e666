package arch

// InternLM2 is the configuration of model type "internlm2" (InternLM2, InternLM2.5): Llama with names of its own. In
// one tensor, each key and value head follows the query heads that read it. Absent keys have the defaults of its
// publisher's configuration_internlm2.py; sizes are required.
type InternLM2 struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "internlm2",
		Plain:         true,
		Architectures: []string{"InternLM2ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseInternLM2(config) },
		Docs: Docs{
			Variants: "InternLM2, InternLM2.5: fused projections, dynamic rope, biases, tied embeddings",
			Code:     equals("llama"),
		},
	})
}

// ParseInternLM2 parses the config.json of an internlm2 model.
func ParseInternLM2(config []byte) (*InternLM2, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &InternLM2{parseDense(top, o, commonDefaults{
		class: "InternLM2ForCausalLM", ctx: 2048, eps: 1e-6, bos: []int32{1}, eos: []int32{2},
	}, ropeOptions{types: []RopeType{RopeDefault, RopeLinear, RopeDynamic}}, silu...)}
	m.AttentionBias = o.boolean("bias", true)
	m.OutputBias = m.AttentionBias
	return parsed(m, o)
}

// Facts implements [Model].
func (m *InternLM2) Facts() Facts { return m.facts("internlm2", m.Rope, m.Table()) }

// internLM2Names are the published names of a table's tensors.
var internLM2Names = []string{
	"embed_tokens.", "tok_embeddings.", "lm_head.", "output.", "input_layernorm.", "attention_norm.",
	"post_attention_layernorm.", "ffn_norm.", "self_attn.q_proj.", "attention.wqkv.", "self_attn.k_proj.",
	"attention.wqkv.", "self_attn.v_proj.", "attention.wqkv.", "self_attn.o_proj.", "attention.wo.", "mlp.gate_proj.",
	"feed_forward.w1.", "mlp.up_proj.", "feed_forward.w3.", "mlp.down_proj.", "feed_forward.w2.",
}

// Table implements [Model].
func (m *InternLM2) Table() Table {
	t := m.preNorm("internlm2", false)
	t.publishedAs(asPublished, internLM2Names, m.groupedQKV())
	return t
}

// Decoder implements [Described].
func (m *InternLM2) Decoder() Decoder {
	return Decoder{Dense: &m.Dense}
}
