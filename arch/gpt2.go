package arch

import "strings"

// GPT2 is the configuration of model type "gpt2": LayerNorms, positions learned as vectors, and a plain MLP. Published
// matrices are transposed, with queries, keys and values in one. Absent keys have the defaults of transformers 5.23;
// sizes are required.
type GPT2 struct {
	Dense
	Unscaled bool // the scores are not divided by the root of the head size
	ByLayer  bool // the scores of layer i, from 0, are divided by i + 1
}

func init() {
	register(Arch{
		ModelType:     "gpt2",
		Architectures: []string{"GPT2LMHeadModel"},
		Names: []string{
			"n_embd", "hidden_size",
			"n_positions", "max_position_embeddings",
			"n_head", "num_attention_heads",
			"n_layer", "num_hidden_layers",
		},
		Parse: func(config []byte) (Model, error) { return ParseGPT2(config) },
		GGUF:  []GGUF{ggufGPT2},
		Docs: Docs{
			Variants: "learned positions, transposed and fused projections, scores scaled by layer or not at all",
		},
	})
}

// ParseGPT2 parses the config.json of a gpt2 model.
func ParseGPT2(config []byte) (*GPT2, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	o = o.called("hidden_size", "n_embd", "num_hidden_layers", "n_layer", "num_attention_heads", "n_head",
		"max_position_embeddings", "n_positions", "rms_norm_eps", "layer_norm_epsilon", "intermediate_size", "n_inner")
	end := []int32{50256}
	m := &GPT2{
		Dense: Dense{
			Common: parseCommon(top, o, commonDefaults{
				class: "GPT2LMHeadModel", ctx: 1024, eps: 1e-5, tied: true, bos: end, eos: end,
			}),
			Activation: o.plainActivation("activation_function", "gelu_new"),
			Rope:       Rope{Type: RopeDefault, Theta: defaultTheta, PartialFactor: 1}, // not used
		},
		Unscaled: !o.boolean("scale_attn_weights", true),
		ByLayer:  o.boolean("scale_attn_by_inverse_layer_idx", false),
	}
	m.Intermediate = o.integer("intermediate_size", 4*m.Hidden, 1, maxWidth)
	m.Prefix, m.AttentionBias, m.OutputBias, m.MLPBias = "transformer.", true, true, true
	if o.boolean("add_cross_attention", false) {
		o.fail("add_cross_attention", "be false: there is no encoder to attend to")
	}
	if m.KVHeads != m.Heads {
		o.fail("num_key_value_heads", "be absent")
	}
	if m.queries() != int64(m.Hidden) {
		o.fail("head_dim", "be absent")
	}
	return parsed(m, o)
}

// Facts implements [Model].
func (m *GPT2) Facts() Facts { return m.facts("gpt2", m.Rope, m.Table()) }

// gpt2Names are the published names of a table's tensors.
var gpt2Names = []string{
	"transformer.norm.", "transformer.ln_f.", "embed_tokens.", "wte.", "embed_positions.", "wpe.", "layers.", "h.",
	"input_layernorm.", "ln_1.", "post_attention_layernorm.", "ln_2.", "mlp.up_proj.", "mlp.c_fc.",
	"mlp.down_proj.", "mlp.c_proj.", "self_attn.o_proj.", "attn.c_proj.", "self_attn.q_proj.", "attn.c_attn.",
	"self_attn.k_proj.", "attn.c_attn.", "self_attn.v_proj.", "attn.c_attn.",
}

// Table implements [Model].
func (m *GPT2) Table() Table {
	hidden := int64(m.Hidden)
	last := func(t *Table, name string) { t.layerNorm(name, hidden) }
	t := m.decoderWith("gpt2", last, func(t *Table, layer string, _ int) {
		t.layerNorm(layer+"input_layernorm", hidden)
		m.projections(t, layer+"self_attn", m.queries())
		t.layerNorm(layer+"post_attention_layernorm", hidden)
		m.plainMLP(t, layer+"mlp.up_proj", layer+"mlp.down_proj")
	})
	t.add(m.Prefix+"embed_positions.weight", replicated, int64(m.Context), hidden)
	t.Parts[0].Accept = []string{""}
	t.publishes(naming{layout: fused, names: gpt2Names, transposed: true, qkv: inOrder(hidden)})
	t.publishes(naming{layout: renamed, names: underModel(gpt2Names, m.Prefix), qkv: inOrder(hidden)})
	t.drop("a mask that follows from positions", m.Prefix+"h.*.attn.bias", m.Prefix+"h.*.attn.masked_bias")
	return t
}

// underModel returns names with the prefix that mlx-lm writes them under, for a table with another prefix.
func underModel(names []string, prefix string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		if out[i] = name; i%2 == 1 {
			out[i] = strings.Replace(name, prefix, "model.", 1)
		}
	}
	return append(out, prefix, "model.")
}
