package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/table"
)

// OPT is the configuration of model type "opt": LayerNorms, positions learned as vectors, and a plain MLP. Absent
// keys have the defaults of transformers 5.23; sizes are required.
type OPT struct{ config.Dense }

// OPTFirst is the row of the table of positions that the first position has.
const OPTFirst = 2

func init() {
	arch.Register(arch.Arch{
		ModelType:     "opt",
		Architectures: []string{"OPTForCausalLM"},
		Docs: arch.Docs{
			Variants: "learned positions, with or without biases; not 350M, whose norms follow the layers",
		},
	}, ParseOPT)
}

// ParseOPT parses the config.json of an opt model.
func ParseOPT(data []byte) (*OPT, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	o = o.Renamed("intermediate_size", "ffn_dim")
	delete(o.Keys, "rms_norm_eps")
	m := &OPT{config.Dense{
		Common: config.ParseCommon(top, o, config.Defaults{
			Class: "OPTForCausalLM", Context: 2048, NormEps: 1e-5, Tied: true, BOS: []int32{2}, EOS: []int32{2},
		}),
		Intermediate: o.Required("intermediate_size", 1, config.MaxWidth),
		Activation:   o.PlainActivation("activation_function", "relu"),
		Rope:         config.Rope{Type: config.RopeDefault, Theta: config.DefaultTheta, PartialFactor: 1}, // not used
	}}
	m.Prefix, m.NormName = "model.decoder.", "final_layer_norm"
	m.AttentionBias = o.Bool("enable_bias", true)
	m.OutputBias, m.MLPBias = m.AttentionBias, m.AttentionBias
	o.MustBe(true, "do_layer_norm_before", "layer_norm_elementwise_affine")
	o.MustBe(false, "_remove_final_layer_norm")
	if width := o.Integer("word_embed_proj_dim", m.Hidden, 1, config.MaxWidth); width != m.Hidden {
		o.Fail("word_embed_proj_dim", "be hidden_size: projections of embeddings are not supported")
	}
	if m.QueryWidth() != int64(m.Hidden) || m.KVHeads != m.Heads {
		o.Fail("head_dim", "be absent, as num_key_value_heads")
	}
	return config.Done(m, o)
}

func (m *OPT) Facts() config.Facts { return m.FactsAs("opt", m.Rope, m.Table()) }

// optNames are the published names of a table's tensors.
var optNames = []string{
	"input_layernorm.", "self_attn_layer_norm.", "post_attention_layernorm.", "final_layer_norm.", "self_attn.o_proj.",
	"self_attn.out_proj.", "mlp.up_proj.", "fc1.", "mlp.down_proj.", "fc2.",
}

func (m *OPT) Table() table.Table {
	t := m.Decoder().Table("opt")
	t.Parts[0].Accept = []string{"decoder."}
	t.PublishedAs(table.AsPublished, optNames)
	return t
}

// Decoder implements [arch.Described].
func (m *OPT) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norm:       decoder.Norm{LayerNorm: true, Bias: true},
		RopeLayers: make([]bool, m.Layers),
		Plain:      decoder.UpDown,
		Positions:  m.Context + OPTFirst,
	}}
}
