package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/table"
)

// ChatGLM is the configuration of model type "chatglm" (ChatGLM2, ChatGLM3, and GLM-4 9B as it was published first):
// [Glm] with keys and names of its own. Queries, keys and values are one tensor, gate and up another. Absent keys have
// the defaults of its publisher's configuration_chatglm.py; sizes are required.
type ChatGLM struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "chatglm",
		Plain:         true,
		Architectures: []string{"ChatGLMModel", "ChatGLMForConditionalGeneration"},
		Docs: arch.Docs{
			Variants: "ChatGLM2, ChatGLM3, GLM-4 9B: fused projections, partial interleaved rope, `rope_ratio`",
			Code:     equals("glm"),
		},
	}, ParseChatGLM)
}

// ParseChatGLM parses the config.json of a chatglm model.
func ParseChatGLM(data []byte) (*ChatGLM, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	o = o.Renamed("vocab_size", "padded_vocab_size", "num_hidden_layers", "num_layers", "intermediate_size",
		"ffn_hidden_size", "rms_norm_eps", "layernorm_epsilon", "head_dim", "kv_channels", "num_key_value_heads",
		"multi_query_group_num", "max_position_embeddings", "seq_length")
	if !o.Bool("multi_query_attention", false) {
		delete(o.Keys, "num_key_value_heads")
	}
	m := &ChatGLM{config.Dense{
		Common: config.ParseCommon(top, o, config.Defaults{
			Class: "ChatGLMModel", Context: 2048, NormEps: 1e-5, EOS: []int32{2},
		}),
		Intermediate: o.Required("intermediate_size", 1, config.MaxWidth),
		Activation:   config.SiLU[0],
		Rope: config.Rope{Type: config.RopeDefault, Theta: config.DefaultTheta * o.Above("rope_ratio", 1, 0),
			PartialFactor: 0.5},
	}}
	m.Prefix = "transformer."
	m.OutputBias = o.Bool("add_bias_linear", false)
	m.MLPBias = m.OutputBias
	m.AttentionBias = m.OutputBias || o.Bool("add_qkv_bias", false)
	o.MustBe(true, "rmsnorm", "post_layer_norm", "original_rope")
	o.MustBe(false, "apply_residual_connection_post_layernorm")
	if m.HeadDim%4 != 0 {
		o.Fail("head_dim", "be a multiple of 4: half of each head is rotated")
	}
	return config.Done(m, o)
}

func (m *ChatGLM) Facts() config.Facts { return m.FactsAs("chatglm", m.Rope, m.Table()) }

// chatGLMNames are the published names of a table's tensors.
var chatGLMNames = []string{
	"transformer.norm.", "transformer.encoder.final_layernorm.", "embed_tokens.", "embedding.word_embeddings.",
	"lm_head.", "transformer.output_layer.", "transformer.layers.", "transformer.encoder.layers.",
	"self_attn.q_proj.", "self_attention.query_key_value.", "self_attn.k_proj.", "self_attention.query_key_value.",
	"self_attn.v_proj.", "self_attention.query_key_value.", "self_attn.o_proj.", "self_attention.dense.",
	"mlp.gate_proj.", "mlp.dense_h_to_4h.", "mlp.up_proj.", "mlp.dense_h_to_4h.", "mlp.down_proj.", "mlp.dense_4h_to_h.",
}

func (m *ChatGLM) Table() table.Table {
	t := m.Decoder().Table("chatglm")
	t.PublishedAs(table.AsPublished, chatGLMNames, m.JoinedQKV(), m.JoinedGateUp())
	t.Drop(table.InvFreq, m.Prefix+"rotary_pos_emb.inv_freq")
	return t
}

func (m *ChatGLM) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{Interleaved: true}}
}
