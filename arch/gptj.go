package arch

import "github.com/ingotml/ingot/arch/decoder"

// GPTJ is the configuration of model type "gptj" (GPT-J): LayerNorms, a rope of neighbouring channels that rotates a
// part of each head, and a plain MLP that reads the same norm as attention. Absent keys have the defaults of
// transformers 5.23; sizes are required.
type GPTJ struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "gptj",
		Plain:         true,
		Architectures: []string{"GPTJForCausalLM"},
		Names: []string{
			"n_embd", "hidden_size",
			"n_positions", "max_position_embeddings",
			"n_head", "num_attention_heads",
			"n_layer", "num_hidden_layers",
		},
		Parse: func(config []byte) (Model, error) { return ParseGPTJ(config) },
		Docs:  Docs{Variants: "parallel blocks, partial rope of neighbouring channels, head with a bias"},
	})
}

// ParseGPTJ parses the config.json of a gptj model.
func ParseGPTJ(config []byte) (*GPTJ, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	end := []int32{50256}
	d, o := parseGPT(top, o, "gelu_new", commonDefaults{
		class: "GPTJForCausalLM", ctx: 2048, eps: 1e-5, bos: end, eos: end,
	})
	m := &GPTJ{d}
	m.AttentionBias, m.OutputBias = false, false
	if m.KVHeads != m.Heads {
		o.fail("num_key_value_heads", "be absent")
	}
	rotated := o.integer("rotary_dim", 64, 2, m.HeadDim)
	if rotated%2 != 0 {
		o.fail("rotary_dim", "be even")
	}
	m.Rope.PartialFactor = float64(rotated) / float64(m.HeadDim)
	return parsed(m, o)
}

// Facts implements [Model].
func (m *GPTJ) Facts() Facts { return m.facts("gptj", m.Rope, m.Table()) }

// gptJNames are the published names of a table's tensors.
var gptJNames = []string{
	"transformer.norm.", "transformer.ln_f.", "embed_tokens.", "wte.", "layers.", "h.", "input_layernorm.", "ln_1.",
	"self_attn.o_proj.", "attn.out_proj.", "self_attn.", "attn.", "mlp.up_proj.", "mlp.fc_in.", "mlp.down_proj.",
	"mlp.fc_out.",
}

// Table implements [Model].
func (m *GPTJ) Table() Table {
	hidden := int64(m.Hidden)
	last := func(t *Table, name string) { t.layerNorm(name, hidden) }
	t := m.decoderWith("gptj", last, func(t *Table, layer string, _ int) {
		t.layerNorm(layer+"input_layernorm", hidden)
		m.projections(t, layer+"self_attn", m.queries())
		m.plainMLP(t, layer+"mlp.up_proj", layer+"mlp.down_proj")
	})
	m.headBias(&t)
	t.publishedAs(asPublished, gptJNames)
	t.drop("a mask that follows from positions", m.Prefix+"h.*.attn.bias", m.Prefix+"h.*.attn.masked_bias")
	return t
}

// Decoder implements [Described].
func (m *GPTJ) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norm:        decoder.Norm{LayerNorm: true, Bias: true},
		Norms:       decoder.BeforeShared,
		Parallel:    true,
		Interleaved: true,
		Plain:       decoder.UpDown,
		HeadBias:    true,
	}}
}
