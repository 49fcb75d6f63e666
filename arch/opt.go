package arch

// OPT is the configuration of model type "opt": LayerNorms, positions learned as vectors, and a plain MLP. Absent
// keys have the defaults of transformers 5.23; sizes are required.
type OPT struct{ Dense }

// OPTFirst is the row of the table of positions that the first position has.
const OPTFirst = 2

func init() {
	register(Arch{
		ModelType:     "opt",
		Architectures: []string{"OPTForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseOPT(config) },
		Docs:          Docs{Variants: "learned positions, with or without biases; not 350M, whose norms follow the layers"},
	})
}

// ParseOPT parses the config.json of an opt model.
func ParseOPT(config []byte) (*OPT, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	o = o.called("intermediate_size", "ffn_dim")
	delete(o.raw, "rms_norm_eps")
	m := &OPT{Dense{
		Common: parseCommon(top, o, commonDefaults{
			class: "OPTForCausalLM", ctx: 2048, eps: 1e-5, tied: true, bos: []int32{2}, eos: []int32{2},
		}),
		Intermediate: o.required("intermediate_size", 1, maxWidth),
		Activation:   o.plainActivation("activation_function", "relu"),
		Rope:         Rope{Type: RopeDefault, Theta: defaultTheta, PartialFactor: 1}, // not used
	}}
	m.Prefix, m.NormName = "model.decoder.", "final_layer_norm"
	m.AttentionBias = o.boolean("enable_bias", true)
	m.OutputBias, m.MLPBias = m.AttentionBias, m.AttentionBias
	o.mustBe(true, "do_layer_norm_before", "layer_norm_elementwise_affine")
	o.mustBe(false, "_remove_final_layer_norm")
	if width := o.integer("word_embed_proj_dim", m.Hidden, 1, maxWidth); width != m.Hidden {
		o.fail("word_embed_proj_dim", "be hidden_size: projections of embeddings are not supported")
	}
	if m.queries() != int64(m.Hidden) || m.KVHeads != m.Heads {
		o.fail("head_dim", "be absent, as num_key_value_heads")
	}
	return parsed(m, o)
}

// Facts implements [Model].
func (m *OPT) Facts() Facts { return m.facts("opt", m.Rope, m.Table()) }

// optNames are the published names of a table's tensors.
var optNames = []string{
	"input_layernorm.", "self_attn_layer_norm.", "post_attention_layernorm.", "final_layer_norm.", "self_attn.o_proj.",
	"self_attn.out_proj.", "mlp.up_proj.", "fc1.", "mlp.down_proj.", "fc2.",
}

// Table implements [Model].
func (m *OPT) Table() Table {
	hidden := int64(m.Hidden)
	last := func(t *Table, name string) { t.layerNorm(name, hidden) }
	t := m.decoderWith("opt", last, func(t *Table, layer string, _ int) {
		t.layerNorm(layer+"input_layernorm", hidden)
		m.projections(t, layer+"self_attn", m.queries())
		t.layerNorm(layer+"post_attention_layernorm", hidden)
		m.plainMLP(t, layer+"mlp.up_proj", layer+"mlp.down_proj")
	})
	t.add(m.Prefix+"embed_positions.weight", replicated, int64(m.Context+OPTFirst), hidden)
	t.Parts[0].Accept = []string{"decoder."}
	t.publishedAs(asPublished, optNames)
	return t
}
