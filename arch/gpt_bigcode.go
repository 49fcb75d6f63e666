package arch

import "github.com/ingotml/ingot/arch/decoder"

// GPTBigCode is the configuration of model type "gpt_bigcode" (SantaCoder, StarCoder): [GPT2] whose query heads read
// one key and value head. Matrices are not transposed. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type GPTBigCode struct {
	Dense
	Unscaled bool // the scores are not divided by the root of the head size
}

func init() {
	register(Arch{
		ModelType:     "gpt_bigcode",
		Plain:         true,
		Architectures: []string{"GPTBigCodeForCausalLM"},
		Names: []string{
			"n_embd", "hidden_size",
			"n_positions", "max_position_embeddings",
			"n_head", "num_attention_heads",
			"n_layer", "num_hidden_layers",
		},
		Parse: func(config []byte) (Model, error) { return ParseGPTBigCode(config) },
		Docs:  Docs{Variants: "StarCoder: learned positions, one key and value head or all, fused projections"},
	})
}

// ParseGPTBigCode parses the config.json of a gpt_bigcode model.
func ParseGPTBigCode(config []byte) (*GPTBigCode, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	end := []int32{50256}
	d, o := parseGPT(top, o, "gelu_pytorch_tanh", commonDefaults{
		class: "GPTBigCodeForCausalLM", ctx: 1024, eps: 1e-5, tied: true, bos: end, eos: end,
	})
	m := &GPTBigCode{Dense: d, Unscaled: !o.boolean("scale_attn_weights", true)}
	m.AttentionBias, m.OutputBias = true, true
	o.mustBe(false, "add_cross_attention")
	// transformers saves the number of heads, and does not read it.
	if m.KVHeads = m.Heads; o.boolean("multi_query", true) {
		m.KVHeads = 1
	}
	return parsed(m, o)
}

// parseGPT reads the keys that have the names of GPT-2.
func parseGPT(top, o object, activation string, d commonDefaults) (Dense, object) {
	o = o.called("hidden_size", "n_embd", "num_hidden_layers", "n_layer", "num_attention_heads", "n_head",
		"max_position_embeddings", "n_positions", "rms_norm_eps", "layer_norm_epsilon", "intermediate_size", "n_inner")
	m := Dense{
		Common:     parseCommon(top, o, d),
		Activation: o.plainActivation("activation_function", activation),
		Rope:       Rope{Type: RopeDefault, Theta: defaultTheta, PartialFactor: 1},
	}
	m.Intermediate = o.integer("intermediate_size", 4*m.Hidden, 1, maxWidth)
	m.Prefix, m.MLPBias = "transformer.", true
	if m.queries() != int64(m.Hidden) {
		o.fail("head_dim", "be absent")
	}
	return m, o
}

// Facts implements [Model].
func (m *GPTBigCode) Facts() Facts { return m.facts("gpt_bigcode", m.Rope, m.Table()) }

// Table implements [Model].
func (m *GPTBigCode) Table() Table {
	hidden := int64(m.Hidden)
	last := func(t *Table, name string) { t.layerNorm(name, hidden) }
	t := m.decoderWith("gpt_bigcode", last, func(t *Table, layer string, _ int) {
		t.layerNorm(layer+"input_layernorm", hidden)
		m.projections(t, layer+"self_attn", m.queries())
		t.layerNorm(layer+"post_attention_layernorm", hidden)
		m.plainMLP(t, layer+"mlp.up_proj", layer+"mlp.down_proj")
	})
	t.add(m.Prefix+"embed_positions.weight", replicated, int64(m.Context), hidden)
	t.publishedAs(asPublished, gpt2Names, m.groupedQKV())
	t.drop("a mask that follows from positions", m.Prefix+"h.*.attn.bias", m.Prefix+"h.*.attn.masked_bias")
	return t
}

// Decoder implements [Described].
func (m *GPTBigCode) Decoder() Decoder {
	d := decoder.Description{
		Norm:       decoder.Norm{LayerNorm: true, Bias: true},
		RopeLayers: make([]bool, m.Layers),
		Plain:      decoder.UpDown,
		Positions:  m.Context,
	}
	if m.Unscaled {
		d.AttentionScale = 1
	}
	return Decoder{Dense: &m.Dense, Description: d}
}
