package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// Exaone is the configuration of model type "exaone" (EXAONE 3.0 and 3.5): Llama with the names of GPT-2. Absent keys
// have the defaults of its publisher's configuration_exaone.py; sizes are required.
type Exaone struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "exaone",
		Plain:         true,
		Architectures: []string{"ExaoneForCausalLM"},
		Docs: arch.Docs{
			Variants: "EXAONE 3.0, 3.5 and Deep: names of GPT-2, scaled rope, tied embeddings",
			Code:     equals("llama"),
		},
	}, ParseExaone)
}

// ParseExaone parses the config.json of an exaone model.
func ParseExaone(data []byte) (*Exaone, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	o = o.Renamed("num_hidden_layers", "num_layers", "rms_norm_eps", "layer_norm_epsilon", "hidden_act",
		"activation_function")
	m := &Exaone{config.Dense{
		Common: config.ParseCommon(top, o, config.Defaults{
			Class: "ExaoneForCausalLM", Context: 2048, NormEps: 1e-5, BOS: []int32{0}, EOS: []int32{2},
		}),
		Intermediate: o.Integer("intermediate_size", 0, 1, config.MaxWidth),
		Activation:   o.Activation("hidden_act", config.SiLU...),
	}}
	if m.Intermediate == 0 {
		m.Intermediate = 4 * m.Hidden
	}
	m.ReadRope(o, config.RopeOptions{})
	m.Prefix, m.AttentionBias, m.OutputBias = "transformer.", false, false
	return config.Done(m, o)
}

func (m *Exaone) Facts() config.Facts { return m.FactsAs("exaone", m.Rope, m.Table()) }

// exaoneNames are the published names of a table's tensors.
var exaoneNames = []string{
	"transformer.norm.", "transformer.ln_f.", "embed_tokens.", "wte.", "layers.", "h.", "input_layernorm.", "ln_1.",
	"post_attention_layernorm.", "ln_2.", "self_attn.o_proj.", "attn.attention.out_proj.", "self_attn.",
	"attn.attention.", "mlp.gate_proj.", "mlp.c_fc_0.", "mlp.up_proj.", "mlp.c_fc_1.", "mlp.down_proj.", "mlp.c_proj.",
}

func (m *Exaone) Table() table.Table {
	t := m.Decoder().Table("exaone")
	t.PublishedAs(table.AsPublished, exaoneNames)
	t.Drop(table.InvFreq, m.Prefix+"rotary.inv_freq", m.Prefix+"h.*.attn.attention.rotary.inv_freq")
	return t
}

func (m *Exaone) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense}
}
