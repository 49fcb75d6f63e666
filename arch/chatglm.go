package arch

import "github.com/ingotml/ingot/arch/decoder"

// ChatGLM is the configuration of model type "chatglm" (ChatGLM2, ChatGLM3, and GLM-4 9B as it was published first):
// [Glm] with keys and names of its own. Queries, keys and values are one tensor, gate and up another. Absent keys have
// the defaults of its publisher's configuration_chatglm.py; sizes are required.
type ChatGLM struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "chatglm",
		Plain:         true,
		Architectures: []string{"ChatGLMModel", "ChatGLMForConditionalGeneration"},
		Parse:         func(config []byte) (Model, error) { return ParseChatGLM(config) },
		Docs: Docs{
			Variants: "ChatGLM2, ChatGLM3, GLM-4 9B: fused projections, partial rope of neighbouring channels, `rope_ratio`",
			Code:     equals("glm"),
		},
	})
}

// ParseChatGLM parses the config.json of a chatglm model.
func ParseChatGLM(config []byte) (*ChatGLM, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	o = o.called("vocab_size", "padded_vocab_size", "num_hidden_layers", "num_layers", "intermediate_size",
		"ffn_hidden_size", "rms_norm_eps", "layernorm_epsilon", "head_dim", "kv_channels", "num_key_value_heads",
		"multi_query_group_num", "max_position_embeddings", "seq_length")
	if !o.boolean("multi_query_attention", false) {
		delete(o.raw, "num_key_value_heads")
	}
	m := &ChatGLM{Dense{
		Common: parseCommon(top, o, commonDefaults{
			class: "ChatGLMModel", ctx: 2048, eps: 1e-5, eos: []int32{2},
		}),
		Intermediate: o.required("intermediate_size", 1, maxWidth),
		Activation:   silu[0],
		Rope:         Rope{Type: RopeDefault, Theta: defaultTheta * o.above("rope_ratio", 1, 0), PartialFactor: 0.5},
	}}
	m.Prefix = "transformer."
	m.OutputBias = o.boolean("add_bias_linear", false)
	m.MLPBias = m.OutputBias
	m.AttentionBias = m.OutputBias || o.boolean("add_qkv_bias", false)
	o.mustBe(true, "rmsnorm", "post_layer_norm", "original_rope")
	o.mustBe(false, "apply_residual_connection_post_layernorm")
	if m.HeadDim%4 != 0 {
		o.fail("head_dim", "be a multiple of 4: half of each head is rotated")
	}
	return parsed(m, o)
}

// Facts implements [Model].
func (m *ChatGLM) Facts() Facts { return m.facts("chatglm", m.Rope, m.Table()) }

// chatGLMNames are the published names of a table's tensors.
var chatGLMNames = []string{
	"transformer.norm.", "transformer.encoder.final_layernorm.", "embed_tokens.", "embedding.word_embeddings.",
	"lm_head.", "transformer.output_layer.", "transformer.layers.", "transformer.encoder.layers.",
	"self_attn.q_proj.", "self_attention.query_key_value.", "self_attn.k_proj.", "self_attention.query_key_value.",
	"self_attn.v_proj.", "self_attention.query_key_value.", "self_attn.o_proj.", "self_attention.dense.",
	"mlp.gate_proj.", "mlp.dense_h_to_4h.", "mlp.up_proj.", "mlp.dense_h_to_4h.", "mlp.down_proj.", "mlp.dense_4h_to_h.",
}

// Table implements [Model].
func (m *ChatGLM) Table() Table {
	t := m.preNorm("chatglm", false)
	t.publishedAs(asPublished, chatGLMNames, m.joinedQKV(), m.joinedGateUp())
	t.drop(dropInvFreq, m.Prefix+"rotary_pos_emb.inv_freq")
	return t
}

// Decoder implements [Described].
func (m *ChatGLM) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Description: decoder.Description{Interleaved: true}}
}
