package arch

import "github.com/ingotml/ingot/arch/decoder"

// GPTNeoX is the configuration of model type "gpt_neox" (Pythia, GPT-NeoX): LayerNorms, a rope that rotates a part of
// each head, and an MLP that reads the same input as attention. Queries, keys and values are published in one tensor,
// head by head. Absent keys have the defaults of transformers 5.23; sizes are required.
type GPTNeoX struct {
	Dense
	Parallel bool // the MLP reads the input of attention
}

func init() {
	register(Arch{
		ModelType:     "gpt_neox",
		Plain:         true,
		Architectures: []string{"GPTNeoXForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseGPTNeoX(config) },
		GGUF:          []GGUF{ggufGPTNeoX},
		Docs:          Docs{Variants: "parallel or sequential blocks, partial rope, with or without biases"},
	})
}

// ParseGPTNeoX parses the config.json of a gpt_neox model.
func ParseGPTNeoX(config []byte) (*GPTNeoX, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	o = o.called("rope_theta", "rotary_emb_base", "partial_rotary_factor", "rotary_pct", "rms_norm_eps", "layer_norm_eps")
	d := commonDefaults{class: "GPTNeoXForCausalLM", ctx: 2048, eps: 1e-5, bos: []int32{0}, eos: []int32{2}}
	m := &GPTNeoX{
		Dense:    parsePlain(top, o, d, ropeOptions{partial: 0.25}, "gelu"),
		Parallel: o.boolean("use_parallel_residual", true),
	}
	m.AttentionBias = o.boolean("attention_bias", true)
	m.OutputBias, m.MLPBias, m.Prefix = m.AttentionBias, true, "gpt_neox."
	if m.KVHeads != m.Heads {
		o.fail("num_key_value_heads", "be absent")
	}
	if m.queries() != int64(m.Hidden) {
		o.fail("head_dim", "be absent")
	}
	return parsed(m, o)
}

// parsePlain is parseDense for models with a plain MLP. activation is the default.
func parsePlain(top, o object, d commonDefaults, r ropeOptions, activation string) Dense {
	m := Dense{
		Common:       parseCommon(top, o, d),
		Intermediate: o.size("intermediate_size", 0, maxWidth),
		Activation:   o.plainActivation("hidden_act", activation),
	}
	m.rope(o, r)
	return m
}

// Facts implements [Model].
func (m *GPTNeoX) Facts() Facts { return m.facts("gpt_neox", m.Rope, m.Table()) }

// gptNeoXNames are the published names of a table's tensors.
var gptNeoXNames = []string{
	"gpt_neox.norm.", "gpt_neox.final_layer_norm.", "gpt_neox.embed_tokens.", "gpt_neox.embed_in.",
	"lm_head.", "embed_out.", "self_attn.q_proj.", "attention.query_key_value.", "self_attn.k_proj.",
	"attention.query_key_value.", "self_attn.v_proj.", "attention.query_key_value.", "self_attn.o_proj.",
	"attention.dense.", "mlp.up_proj.", "mlp.dense_h_to_4h.", "mlp.down_proj.", "mlp.dense_4h_to_h.",
}

// Table implements [Model].
func (m *GPTNeoX) Table() Table {
	hidden := int64(m.Hidden)
	last := func(t *Table, name string) { t.layerNorm(name, hidden) }
	t := m.decoderWith("gpt_neox", last, func(t *Table, layer string, _ int) {
		t.layerNorm(layer+"input_layernorm", hidden)
		m.projections(t, layer+"self_attn", m.queries())
		t.layerNorm(layer+"post_attention_layernorm", hidden)
		m.plainMLP(t, layer+"mlp.up_proj", layer+"mlp.down_proj")
	})
	qkv := byHead(int64(m.Heads), int64(m.HeadDim))
	t.publishes(naming{layout: fused, names: gptNeoXNames, qkv: qkv})
	mlx := append([]string{"gpt_neox.layers.", "model.h.", "lm_head.", "model.embed_out."}, gptNeoXNames...)
	t.publishes(naming{layout: renamed, names: underModel(mlx, m.Prefix), qkv: qkv})
	t.drop("a mask that follows from positions", m.Prefix+"layers.*.attention.bias",
		m.Prefix+"layers.*.attention.masked_bias")
	t.drop(dropInvFreq, m.Prefix+"layers.*.attention.rotary_emb.inv_freq")
	return t
}

// Decoder implements [Described].
func (m *GPTNeoX) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norm:     decoder.Norm{LayerNorm: true, Bias: true},
		Parallel: m.Parallel,
		Plain:    decoder.UpDown,
	}}
}
