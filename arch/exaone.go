package arch

// Exaone is the configuration of model type "exaone" (EXAONE 3.0 and 3.5): Llama with the names of GPT-2. Absent keys
// have the defaults of its publisher's configuration_exaone.py; sizes are required.
type Exaone struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "exaone",
		Plain:         true,
		Architectures: []string{"ExaoneForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseExaone(config) },
		Docs: Docs{
			Variants: "EXAONE 3.0, 3.5 and Deep: names of GPT-2, scaled rope, tied embeddings",
			Code:     equals("llama"),
		},
	})
}

// ParseExaone parses the config.json of an exaone model.
func ParseExaone(config []byte) (*Exaone, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	o = o.called("num_hidden_layers", "num_layers", "rms_norm_eps", "layer_norm_epsilon", "hidden_act",
		"activation_function")
	m := &Exaone{Dense{
		Common: parseCommon(top, o, commonDefaults{
			class: "ExaoneForCausalLM", ctx: 2048, eps: 1e-5, bos: []int32{0}, eos: []int32{2},
		}),
		Intermediate: o.integer("intermediate_size", 0, 1, maxWidth),
		Activation:   o.activation("hidden_act", silu...),
	}}
	if m.Intermediate == 0 {
		m.Intermediate = 4 * m.Hidden
	}
	m.rope(o, ropeOptions{})
	m.Prefix, m.AttentionBias, m.OutputBias = "transformer.", false, false
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Exaone) Facts() Facts { return m.facts("exaone", m.Rope, m.Table()) }

// exaoneNames are the published names of a table's tensors.
var exaoneNames = []string{
	"transformer.norm.", "transformer.ln_f.", "embed_tokens.", "wte.", "layers.", "h.", "input_layernorm.", "ln_1.",
	"post_attention_layernorm.", "ln_2.", "self_attn.o_proj.", "attn.attention.out_proj.", "self_attn.",
	"attn.attention.", "mlp.gate_proj.", "mlp.c_fc_0.", "mlp.up_proj.", "mlp.c_fc_1.", "mlp.down_proj.", "mlp.c_proj.",
}

// Table implements [Model].
func (m *Exaone) Table() Table {
	t := m.preNorm("exaone", false)
	t.publishedAs(asPublished, exaoneNames)
	t.drop(dropInvFreq, m.Prefix+"rotary.inv_freq", m.Prefix+"h.*.attn.attention.rotary.inv_freq")
	return t
}

// Decoder implements [Described].
func (m *Exaone) Decoder() Decoder {
	return Decoder{Dense: &m.Dense}
}
