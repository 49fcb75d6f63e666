package arch

import "github.com/ingotml/ingot/arch/decoder"

// Falcon is the configuration of model type "falcon": LayerNorms, a rope, and a plain MLP that mostly reads the input
// of attention. Queries, keys and values are one tensor. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type Falcon struct {
	Dense
	Parallel bool // the MLP reads the input of attention
	TwoNorms bool // and has a norm of its own
}

func init() {
	register(Arch{
		ModelType:     "falcon",
		Plain:         true,
		Architectures: []string{"FalconForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseFalcon(config) },
		Docs: Docs{
			Variants: "one key and value head (7B), several (40B, 180B, 2 11B) or all; parallel or sequential blocks; not " +
				"those with ALiBi",
		},
	})
}

// ParseFalcon parses the config.json of a falcon model.
func ParseFalcon(config []byte) (*Falcon, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	o = o.called("hidden_size", "n_embed", "num_hidden_layers", "n_layer", "num_attention_heads", "n_head",
		"num_key_value_heads", "n_head_kv", "num_key_value_heads", "num_kv_heads", "intermediate_size", "ffn_hidden_size",
		"rms_norm_eps", "layer_norm_epsilon", "hidden_act", "activation")
	several, one := o.boolean("new_decoder_architecture", false), o.boolean("multi_query", true)
	if !several {
		delete(o.raw, "num_key_value_heads")
	}
	m := &Falcon{
		Dense: Dense{
			Common: parseCommon(top, o, commonDefaults{
				class: "FalconForCausalLM", ctx: 2048, eps: 1e-5, tied: true, bos: []int32{11}, eos: []int32{11},
			}),
			Activation: o.plainActivation("hidden_act", "gelu"),
		},
		Parallel: several || o.boolean("parallel_attn", true),
	}
	if !several && one {
		m.KVHeads = 1
	}
	m.rope(o, ropeOptions{})
	m.Intermediate = o.integer("intermediate_size", 4*m.Hidden, 1, maxWidth)
	m.Prefix = "transformer."
	m.AttentionBias = o.boolean("bias", false)
	m.OutputBias, m.MLPBias = m.AttentionBias, m.AttentionBias
	m.TwoNorms = several && o.integer("num_ln_in_parallel_attn", 2, 1, 2) == 2
	if o.boolean("alibi", false) {
		o.fail("alibi", "be false: attention with ALiBi instead of rope is not supported")
	}
	if several && !o.boolean("parallel_attn", true) {
		o.fail("parallel_attn", "be true, since new_decoder_architecture is")
	}
	if m.queries() != int64(m.Hidden) {
		o.fail("head_dim", "be absent")
	}
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Falcon) Facts() Facts { return m.facts("falcon", m.Rope, m.Table()) }

// falconNames are the published names of a table's tensors. Those of two norms are further ones.
var (
	falconNames = []string{
		"transformer.norm.", "transformer.ln_f.", "embed_tokens.", "word_embeddings.", "layers.", "h.",
		"self_attn.q_proj.", "self_attention.query_key_value.", "self_attn.k_proj.", "self_attention.query_key_value.",
		"self_attn.v_proj.", "self_attention.query_key_value.", "self_attn.o_proj.", "self_attention.dense.",
		"mlp.up_proj.", "mlp.dense_h_to_4h.", "mlp.down_proj.", "mlp.dense_4h_to_h.",
	}
	falconNorms = []string{"input_layernorm.", "ln_attn.", "post_attention_layernorm.", "ln_mlp."}
)

// Table implements [Model].
func (m *Falcon) Table() Table {
	hidden := int64(m.Hidden)
	last := func(t *Table, name string) { t.layerNorm(name, hidden) }
	t := m.decoderWith("falcon", last, func(t *Table, layer string, _ int) {
		t.layerNorm(layer+"input_layernorm", hidden)
		m.projections(t, layer+"self_attn", m.queries())
		if !m.Parallel || m.TwoNorms {
			t.layerNorm(layer+"post_attention_layernorm", hidden)
		}
		m.plainMLP(t, layer+"mlp.up_proj", layer+"mlp.down_proj")
	})
	names := falconNames
	if m.TwoNorms {
		names = append(falconNorms[:len(falconNorms):len(falconNorms)], names...)
	}
	t.publishedAs(asPublished, names, m.groupedQKV())
	t.drop(dropInvFreq, m.Prefix+"h.*.self_attention.rotary_emb.inv_freq",
		m.Prefix+"h.*.self_attention.maybe_rotary.inv_freq")
	return t
}

// Decoder implements [Described].
func (m *Falcon) Decoder() Decoder {
	d := decoder.Description{
		Norm:     decoder.Norm{LayerNorm: true, Bias: true},
		Parallel: m.Parallel,
		Plain:    decoder.UpDown,
	}
	if m.Parallel && !m.TwoNorms {
		d.Norms = decoder.BeforeShared
	}
	return Decoder{Dense: &m.Dense, Description: d}
}
