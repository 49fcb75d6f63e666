package arch

// Lfm3 is the configuration of model type "lfm3": layers of attention, some in a window, or a gated short convolution,
// each with a gated feed-forward block. Norms surround both, and a gate of each head multiplies the attention's output.
// Absent keys have the defaults of transformers 5.23; sizes are required.
type Lfm3 struct {
	Dense              // Rope is of full layers
	Full        []bool // by layer: attention, else a convolution
	SlidingRope Rope
	Taps        int  // size of the convolutions
	ConvBias    bool // biases of the convolutions, and of the projections around them
	Sandwich    bool // norms of the outputs of attention, convolutions and feed-forward blocks
	Gate        bool // of the output of attention
}

func init() {
	register(Arch{
		ModelType:     "lfm3",
		Architectures: []string{"Lfm3ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseLfm3(config) },
		Docs: Docs{
			Variants: "short convolutions with some layers of attention, full or sliding, with a rope each; gates of heads, " +
				"norms of outputs; biases, tied embeddings",
		},
	})
}

// ParseLfm3 parses the config.json of an lfm3 model.
func ParseLfm3(config []byte) (*Lfm3, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	o = o.called("rms_norm_eps", "norm_eps")
	m := Lfm3{
		Dense: Dense{
			Common: parseCommon(top, o, commonDefaults{
				class: "Lfm3ForCausalLM", kv: 4, dim: 128, ctx: 128000, eps: 1e-5, tied: true, bos: []int32{124894},
				eos: []int32{124900},
			}),
			Intermediate: o.size("intermediate_size", 0, maxWidth),
			Activation:   silu[0],
		},
		Taps:     o.integer("conv_L_cache", 7, 2, maxTaps),
		ConvBias: o.boolean("conv_bias", false),
		Sandwich: o.boolean("use_sandwich_norm", true),
		Gate:     o.boolean("use_attention_gate", true),
	}
	m.NormName = "embedding_norm"
	m.parseLayers(o)
	full := ropeOptions{
		types: gemma4Ropes, theta: 1e6, headDim: m.HeadDim, kind: RopeProportional, partial: 0.5, inherit: true,
	}
	sliding := ropeOptions{types: gemma4Ropes, theta: 1e4, headDim: m.HeadDim, inherit: true}
	if o.has("rope_parameters") {
		sliding.theta = full.theta // the default of all parameters that are given
	}
	m.Rope = parseLayerRope(o, fullAttention, object{}, m.Context, full)
	m.SlidingRope = parseLayerRope(o, slidingAttention, object{}, m.Context, sliding)
	return parsed(&m, o)
}

// parseLayers reads which layers are attention, and which of these slide.
func (m *Lfm3) parseLayers(o object) {
	kinds := o.kinds("layer_types", m.Layers, convLayer, fullAttention, slidingAttention)
	if kinds == nil {
		kinds = make([]string, m.Layers)
		for i := range kinds {
			switch {
			case i%4 == 2:
				kinds[i] = fullAttention
			case i%4 == 0 && i > 0:
				kinds[i] = slidingAttention
			default:
				kinds[i] = convLayer
			}
		}
	}
	m.Full = make([]bool, m.Layers)
	for i, kind := range kinds {
		m.Full[i] = kind != convLayer
	}
	m.slide(o.window("sliding_window", 256), slidingOf(kinds))
}

// State implements [Model]. A convolution keeps its last inputs.
func (m *Lfm3) State() []LayerState {
	list := m.Dense.State()
	for i, full := range m.Full {
		if !full {
			list[i] = LayerState{Fixed: int64(m.Taps-1) * int64(m.Hidden)}
		}
	}
	return list
}

// Facts implements [Model].
func (m *Lfm3) Facts() Facts { return m.facts("lfm3", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Lfm3) Table() Table {
	hidden := int64(m.Hidden)
	t := m.decoder("lfm3", false, func(t *Table, layer string, i int) {
		t.norm(layer+"operator_norm", hidden, false)
		if m.Full[i] {
			m.attention(t, layer+"self_attn", m.queries(), false)
			if m.Gate {
				t.linear(layer+"self_attn.gate_proj", int64(m.Heads), hidden, false, queryRows(m.Heads, m.KVHeads))
			}
		} else {
			t.shortConv(layer+"conv", m.Taps, hidden, m.ConvBias)
		}
		t.norm(layer+"ffn_norm", hidden, false)
		m.mlp(t, layer+"feed_forward", m.Intermediate)
		if m.Sandwich {
			t.norm(layer+"post_operator_norm", hidden, false)
			t.norm(layer+"post_ffn_norm", hidden, false)
		}
	})
	t.publishes(naming{layout: fused, names: []string{
		".feed_forward.gate_proj.", ".feed_forward.w1.", ".feed_forward.up_proj.", ".feed_forward.w3.",
		".feed_forward.down_proj.", ".feed_forward.w2.",
	}})
	return t
}
