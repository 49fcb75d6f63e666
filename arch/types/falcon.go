package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/table"
)

// Falcon is the configuration of model type "falcon": LayerNorms, a rope, and a plain MLP that mostly reads the input
// of attention. Queries, keys and values are one tensor. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type Falcon struct {
	config.Dense
	Parallel bool // the MLP reads the input of attention
	TwoNorms bool // and has a norm of its own
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "falcon",
		Plain:         true,
		Architectures: []string{"FalconForCausalLM"},
		Docs: arch.Docs{
			Variants: "one key and value head (7B), several (40B, 180B, 2 11B) or all; parallel or sequential blocks; not " +
				"those with ALiBi",
		},
	}, ParseFalcon)
}

// ParseFalcon parses the config.json of a falcon model.
func ParseFalcon(data []byte) (*Falcon, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	o = o.Renamed("hidden_size", "n_embed", "num_hidden_layers", "n_layer", "num_attention_heads", "n_head",
		"num_key_value_heads", "n_head_kv", "num_key_value_heads", "num_kv_heads", "intermediate_size", "ffn_hidden_size",
		"rms_norm_eps", "layer_norm_epsilon", "hidden_act", "activation")
	several, one := o.Bool("new_decoder_architecture", false), o.Bool("multi_query", true)
	if !several {
		delete(o.Keys, "num_key_value_heads")
	}
	m := &Falcon{
		Dense: config.Dense{
			Common: config.ParseCommon(top, o, config.Defaults{
				Class: "FalconForCausalLM", Context: 2048, NormEps: 1e-5, Tied: true, BOS: []int32{11}, EOS: []int32{11},
			}),
			Activation: o.PlainActivation("hidden_act", "gelu"),
		},
		Parallel: several || o.Bool("parallel_attn", true),
	}
	if !several && one {
		m.KVHeads = 1
	}
	m.ReadRope(o, config.RopeOptions{})
	m.Intermediate = o.Integer("intermediate_size", 4*m.Hidden, 1, config.MaxWidth)
	m.Prefix = "transformer."
	m.AttentionBias = o.Bool("bias", false)
	m.OutputBias, m.MLPBias = m.AttentionBias, m.AttentionBias
	m.TwoNorms = several && o.Integer("num_ln_in_parallel_attn", 2, 1, 2) == 2
	if o.Bool("alibi", false) {
		o.Fail("alibi", "be false: attention with ALiBi instead of rope is not supported")
	}
	if several && !o.Bool("parallel_attn", true) {
		o.Fail("parallel_attn", "be true, since new_decoder_architecture is")
	}
	if m.QueryWidth() != int64(m.Hidden) {
		o.Fail("head_dim", "be absent")
	}
	return config.Done(m, o)
}

func (m *Falcon) Facts() config.Facts { return m.FactsAs("falcon", m.Rope, m.Table()) }

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

func (m *Falcon) Table() table.Table {
	t := m.Decoder().Table("falcon")
	names := falconNames
	if m.TwoNorms {
		names = append(falconNorms[:len(falconNorms):len(falconNorms)], names...)
	}
	t.PublishedAs(table.AsPublished, names, m.GroupedQKV())
	t.Drop(table.InvFreq, m.Prefix+"h.*.self_attention.rotary_emb.inv_freq",
		m.Prefix+"h.*.self_attention.maybe_rotary.inv_freq")
	return t
}

func (m *Falcon) Decoder() config.Decoder {
	d := decoder.Description{
		Norm:     decoder.Norm{LayerNorm: true, Bias: true},
		Parallel: m.Parallel,
		Plain:    decoder.UpDown,
	}
	if m.Parallel && !m.TwoNorms {
		d.Norms = decoder.BeforeShared
	}
	return config.Decoder{Dense: &m.Dense, Description: d}
}
