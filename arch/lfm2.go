package arch

import "slices"

// Lfm2 is the configuration of model type "lfm2": layers of attention or a gated short convolution, each with a gated
// feed-forward block. Absent keys have the defaults of transformers 5.23; sizes are required.
type Lfm2 struct {
	Dense
	Full     []bool // by layer: attention, else a convolution
	Taps     int    // size of the convolutions
	ConvBias bool   // biases of the convolutions, and of the projections around them
}

func init() {
	register(Arch{
		ModelType:     "lfm2",
		Aliases:       []string{"lfm2_vl"},
		Towers:        []string{"lfm2_vl"},
		Architectures: []string{"Lfm2ForCausalLM", "Lfm2VlForConditionalGeneration"},
		Parse:         func(config []byte) (Model, error) { return ParseLfm2(config) },
		GGUF:          []GGUF{ggufLfm2},
		Docs:          Docs{Variants: "short convolutions with some layers of attention; biases, tied embeddings; LFM2-VL"},
	})
}

// ParseLfm2 parses the config.json of an lfm2 model.
func ParseLfm2(config []byte) (*Lfm2, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	o = o.called("intermediate_size", "block_ff_dim")
	m := parseLfm2(top, o, "Lfm2ForCausalLM")
	m.Intermediate = o.size("intermediate_size", 0, maxWidth)
	if o.boolean("block_auto_adjust_ff_dim", true) {
		width, of := 2*m.Intermediate/3, o.integer("block_multiple_of", 256, 1, maxWidth)
		if !o.isNull("block_ffn_dim_multiplier") {
			factor := o.above("block_ffn_dim_multiplier", 1, 0)
			if factor > 64 {
				o.fail("block_ffn_dim_multiplier", "be <= 64")
				factor = 1
			}
			width = of * ((int(factor*float64(width)) + of - 1) / of)
		}
		m.Intermediate = max(width, 1)
	}
	return parsed(&m, o)
}

// convLayer is the type of a layer that is a short convolution.
const convLayer = "conv"

// parseLfm2 reads the keys that models with and without experts share.
func parseLfm2(top, o object, class string) Lfm2 {
	o = o.called("rms_norm_eps", "norm_eps")
	for _, in := range []object{top, o} {
		if in.has("tie_embedding") {
			in.set("tie_word_embeddings", in.boolean("tie_embedding", true))
		}
	}
	m := Lfm2{
		Dense: Dense{
			Common: parseCommon(top, o, commonDefaults{
				class: class, kv: 8, ctx: 128000, eps: 1e-5, tied: true, bos: []int32{1}, eos: []int32{2},
			}),
			Activation: silu[0],
		},
		Taps:     o.integer("conv_L_cache", 3, 2, maxTaps),
		ConvBias: o.boolean("conv_bias", false),
	}
	m.NormName = "embedding_norm"
	m.AttentionBias, m.OutputBias = false, false
	m.rope(o, ropeOptions{theta: 1e6})
	m.Full = make([]bool, m.Layers)
	kinds := o.kinds("layer_types", m.Layers, convLayer, fullAttention)
	attention := o.integers("full_attn_idxs", maxLayers, 0, m.Layers-1)
	for i := range m.Full {
		switch {
		case kinds != nil:
			m.Full[i] = kinds[i] == fullAttention
		default:
			m.Full[i] = !o.has("full_attn_idxs") || slices.Contains(attention, i)
		}
	}
	return m
}

// State implements [Model]. A convolution keeps its last inputs.
func (m *Lfm2) State() []LayerState {
	return m.hybridStates(m.Full, LayerState{Fixed: int64(m.Taps-1) * int64(m.Hidden)})
}

// Facts implements [Model].
func (m *Lfm2) Facts() Facts { return m.facts("lfm2", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Lfm2) Table() Table {
	return m.table("lfm2", func(t *Table, layer string, _ int) { m.mlp(t, layer+"feed_forward", m.Intermediate) })
}

// table makes the tensor table. network adds a layer's feed-forward block.
func (m *Lfm2) table(modelType string, network func(t *Table, layer string, i int)) Table {
	hidden := int64(m.Hidden)
	t := m.decoder(modelType, false, func(t *Table, layer string, i int) {
		t.norm(layer+"operator_norm", hidden, false)
		if m.Full[i] {
			m.projections(t, layer+"self_attn", m.queries())
			t.norm(layer+"self_attn.q_layernorm", int64(m.HeadDim), false)
			t.norm(layer+"self_attn.k_layernorm", int64(m.HeadDim), false)
		} else {
			t.shortConv(layer+"conv", m.Taps, hidden, m.ConvBias)
		}
		t.norm(layer+"ffn_norm", hidden, false)
		network(t, layer, i)
	})
	t.publishes(naming{layout: fused, names: []string{
		".self_attn.o_proj.", ".self_attn.out_proj.", ".feed_forward.gate_proj.", ".feed_forward.w1.",
		".feed_forward.up_proj.", ".feed_forward.w3.", ".feed_forward.down_proj.", ".feed_forward.w2.",
		".feed_forward.gate.e_score_correction_bias", ".feed_forward.expert_bias",
	}})
	t.dropTowers(modelType)
	return t
}

// shortConv adds a gated short convolution. Ranks divide its channels.
func (t *Table) shortConv(name string, taps int, hidden int64, bias bool) {
	channels := headRows(int(hidden))
	in := channels
	in.Sections = []int64{hidden, hidden, hidden}
	t.linear(name+".in_proj", 3*hidden, hidden, bias, in)
	s := t.add(name+".conv.weight", channels, hidden, 1, int64(taps))
	s.Reshape = [][]int64{{hidden, int64(taps), 1}, {hidden, int64(taps)}}
	if bias {
		t.add(name+".conv.bias", channels, hidden)
	}
	t.linear(name+".out_proj", hidden, hidden, bias, headColumns(int(hidden)))
}
