package arch

// MiniMax is the configuration of model type "minimax" (MiniMax-Text-01 and M1): layers of lightning attention, which
// is linear with a fixed decay for each head, or of attention, each with experts. The residual stream is what the norms
// return; it and the outputs are multiplied by factors. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type MiniMax struct {
	Dense
	Mixture Mixture
	Full    []bool // by layer: attention, else lightning attention
	// FullScale, LinearScale and NetworkScale are the factors after attention, lightning attention and experts.
	FullScale, LinearScale, NetworkScale ResidualScale
}

// ResidualScale holds the factors of the residual stream and of what is added to it.
type ResidualScale struct{ Stream, Output float64 }

func init() {
	register(Arch{
		ModelType:     "minimax",
		Aliases:       []string{"minimax_text_01", "minimax_m1"},
		Architectures: []string{"MiniMaxForCausalLM", "MiniMaxText01ForCausalLM", "MiniMaxM1ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseMiniMax(config) },
		Docs: Docs{
			Variants: "lightning attention and attention, experts named `w1` to `w3`, factors of the residual stream; " +
				"MiniMax-Text-01 and M1",
			Rules: "generic, also for experts",
		},
	})
}

// ParseMiniMax parses the config.json of a minimax model.
func ParseMiniMax(config []byte) (*MiniMax, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	// Published models rotate a part of each head. transformers ignores the key, and partial_rotary_factor.
	var r ropeOptions
	if r.theta = 1e6; o.has("rotary_dim") {
		r.partial, o = 1, rotaryDim(o, 128)
	}
	d := commonDefaults{class: "MiniMaxForCausalLM", kv: 8, ctx: 1 << 17, eps: 1e-5, bos: []int32{1}, eos: []int32{2}}
	m := &MiniMax{Dense: parseDecoder(top, o, d, r)}
	m.AttentionBias, m.OutputBias = false, false
	m.Mixture.parseExperts(o, m.Common, mixtureDefaults{count: 8, perToken: 2}, "intermediate_size")
	m.Mixture.Experts.NormTopK = true
	m.parseFull(o)
	m.slide(o.window("sliding_window", 0), m.Full)
	m.FullScale = o.residual("full_attn", "layernorm_full_attention")
	m.LinearScale = o.residual("linear_attn", "layernorm_linear_attention")
	m.NetworkScale = o.residual("mlp", "layernorm_mlp")
	if key := "shared_intermediate_size"; o.integer(key, 0, 0, maxWidth) != 0 {
		o.fail(key, "be 0: shared experts are not supported")
	}
	if o.has("postnorm") && !o.boolean("postnorm", true) {
		o.fail("postnorm", "be true")
	}
	return parsed(m, o)
}

// parseFull reads which layers are attention: layer_types, or the list of 0 and 1 of published models. By default it is
// every other layer from the first on.
func (m *MiniMax) parseFull(o object) {
	var ok bool
	if m.Full, ok = o.hybrid("layer_types", m.Layers); ok {
		return
	}
	const key = "attn_type_list"
	list := o.integers(key, maxLayers, 0, 1)
	if o.has(key) && len(list) != m.Layers {
		o.fail(key, "have an element per layer")
		return
	}
	for i := range m.Full {
		m.Full[i] = i%2 == 0
		if list != nil {
			m.Full[i] = list[i] == 1
		}
	}
}

// residual reads factors under the names of transformers or of published models.
func (o object) residual(name, published string) ResidualScale {
	factor := func(end, old string) float64 {
		return o.above(name+end, o.above(published+old, 1, 0), 0)
	}
	return ResidualScale{Stream: factor("_alpha_factor", "_alpha"), Output: factor("_beta_factor", "_beta")}
}

// State implements [Model]. The state of lightning attention is a matrix for each head, in float32, which counts as two
// 16-bit elements.
func (m *MiniMax) State() []LayerState {
	list := m.Dense.State()
	for i := range list {
		if !m.Full[i] {
			list[i] = LayerState{Fixed: 2 * m.queries() * int64(m.HeadDim)}
		}
	}
	return list
}

// Facts implements [Model].
func (m *MiniMax) Facts() Facts { return m.facts("minimax", m.Rope, m.Table()) }

// Table implements [Model].
func (m *MiniMax) Table() Table {
	hidden, heads := int64(m.Hidden), headRows(m.Heads)
	t := m.decoder("minimax", false, func(t *Table, layer string, i int) {
		attention := layer + "self_attn"
		t.norm(layer+"input_layernorm", hidden, false)
		if m.Full[i] {
			m.projections(t, attention, m.queries())
		} else {
			t.linear(attention+".qkv_proj", 3*m.queries(), hidden, false, heads)
			t.linear(attention+".output_gate", m.queries(), hidden, false, heads)
			t.add(attention+".norm.weight", heads, m.queries())
			t.linear(attention+".out_proj", hidden, m.queries(), false, headColumns(m.Heads))
		}
		t.norm(layer+"post_attention_layernorm", hidden, false)
		t.mixture(layer+"mlp", m.Mixture, m.Hidden)
	})
	t.also(blockSparse...)
	for _, part := range []string{"slope_rate", "query_decay", "key_decay", "diagonal_decay"} {
		t.drop("decays follow from the number of heads and layers", m.Prefix+"layers.*.self_attn."+part)
	}
	return t
}
