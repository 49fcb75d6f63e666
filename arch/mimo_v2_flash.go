package arch

import "fmt"

// MiMoV2Flash is the configuration of model type "mimo_v2_flash": values smaller than queries and keys, sliding layers
// with more KV heads, attention sinks and a rope of their own, experts of DeepSeek's router and dense first layers.
// Absent keys have the defaults of transformers 5.23; sizes are required.
type MiMoV2Flash struct {
	Dense
	Mixture        Mixture
	SlidingRope    Rope    // of sliding layers; Rope is of full ones
	ValueDim       int     // size of the heads of values
	ValueScale     float64 // of the values
	SlidingKVHeads int     // of sliding layers; KVHeads is of full ones
	// Sinks and SlidingSinks say whether full and sliding layers have attention sinks.
	Sinks, SlidingSinks bool
}

func init() {
	register(Arch{
		ModelType:     "mimo_v2_flash",
		Architectures: []string{"MiMoV2FlashForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseMiMoV2Flash(config) },
		GGUF:          []GGUF{ggufMimo2},
		Docs: Docs{
			Variants: "smaller values, attention sinks, KV heads and rope by kind of layer, dense first layers",
			Rules:    "generic, also for experts",
			Draft:    "its own multi-token prediction head (the first of `model.mtp.*`)",
		},
	})
}

// ParseMiMoV2Flash parses the config.json of a mimo_v2_flash model.
func ParseMiMoV2Flash(config []byte) (*MiMoV2Flash, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &MiMoV2Flash{Dense: Dense{Common: parseCommon(top, o, commonDefaults{
		class: "MiMoV2FlashForCausalLM", kv: 4, dim: 192, ctx: 131072, eps: 1e-5, bos: []int32{1},
	}), Activation: o.activation("hidden_act", silu...)}}
	m.OutputBias = false
	m.NormEps = o.above("layernorm_epsilon", m.NormEps, 0)
	m.Intermediate = o.integer("intermediate_size", 16384, 1, maxWidth)
	if m.ValueScale = 1; !o.isNull("attention_value_scale") {
		m.ValueScale = o.above("attention_value_scale", 0.707, 0)
	}
	m.ValueDim = o.integer("v_head_dim", 128, 1, maxHeadDim)
	m.SlidingKVHeads = o.integer("swa_num_key_value_heads", 2*m.KVHeads, 1, maxHeads)
	if m.Heads%m.SlidingKVHeads != 0 {
		o.fail("swa_num_key_value_heads",
			fmt.Sprintf("divide num_attention_heads = %d (it is %d)", m.Heads, m.SlidingKVHeads))
	}
	for key, want := range map[string]int{
		"swa_num_attention_heads": m.Heads, "swa_head_dim": m.HeadDim, "swa_v_head_dim": m.ValueDim,
	} {
		if got := o.integer(key, want, 1, maxWidth); got != want {
			o.fail(key, fmt.Sprintf("be %d, as of full layers", want))
		}
	}
	m.SlidingSinks = o.boolean("add_swa_attention_sink_bias", true)
	m.Sinks = o.boolean("add_full_attention_sink_bias", false)
	m.ropes(o)
	m.slides(o)
	x := &m.Mixture
	x.parseGrouped(o, m.Common, mixtureDefaults{count: 256, perToken: 8, width: 2048, sumToOne: true})
	x.parseDense(o, 1)
	if list := o.integers("moe_layer_freq", maxLayers, 0, 1); list != nil && !o.has("mlp_layer_types") {
		if len(list) != m.Layers {
			o.fail("moe_layer_freq", fmt.Sprintf("have %d elements, one per layer (it has %d)", m.Layers, len(list)))
			return parsed(m, o)
		}
		for i, n := range list {
			x.Sparse[i] = n == 1
		}
	}
	return parsed(m, o)
}

// ropes reads the ropes of full and of sliding layers: parameters per layer type, or the publisher's keys.
func (m *MiMoV2Flash) ropes(o object) {
	const part = 0.334
	r := ropeOptions{headDim: m.HeadDim, theta: 5e6, ownPartial: part}
	swa := ropeOptions{headDim: m.HeadDim, theta: 1e4, ownPartial: part}
	if !o.has("rope_parameters") {
		r.theta, swa.theta = o.theta("rope_theta", r.theta), o.theta("swa_rope_theta", swa.theta)
		r.ownPartial = o.number("partial_rotary_factor", part, isShare, "be > 0 and <= 1")
		swa.ownPartial = r.ownPartial
	}
	m.Rope = parseLayerRope(o, fullAttention, object{}, m.Context, r)
	m.SlidingRope = parseLayerRope(o, slidingAttention, object{}, m.Context, swa)
}

// slides reads which layers slide. The publisher's size of the window does not count a row's own position.
func (m *MiMoV2Flash) slides(o object) {
	sliding := make([]bool, m.Layers)
	for i := range sliding {
		sliding[i] = i > 0 && (i+1)%6 != 0
	}
	kinds := o.kinds("layer_types", m.Layers, fullAttention, slidingAttention)
	list := o.integers("hybrid_layer_pattern", maxLayers, 0, 1)
	switch {
	case kinds != nil:
		sliding = slidingOf(kinds)
	case list != nil && len(list) != m.Layers:
		o.fail("hybrid_layer_pattern", fmt.Sprintf("have %d elements, one per layer (it has %d)", m.Layers, len(list)))
	case list != nil:
		for i, n := range list {
			sliding[i] = n == 1
		}
	}
	window := o.integer("sliding_window", 129, 1, maxContext)
	if o.has("sliding_window_size") {
		window = o.integer("sliding_window_size", 128, 0, maxContext-1) + 1
	}
	m.slide(window, sliding)
}

// Layer returns the sizes of a layer's attention, and whether it has sinks.
func (m *MiMoV2Flash) Layer(i int) (c Common, sinks bool) {
	if m.Window > 0 && m.Sliding[i] {
		return m.SlidingLayer()
	}
	return m.Common, m.Sinks
}

// SlidingLayer is Layer for layers that slide.
func (m *MiMoV2Flash) SlidingLayer() (c Common, sinks bool) {
	c = m.Common
	c.KVHeads = m.SlidingKVHeads
	return c, m.SlidingSinks
}

// Next returns the name prefix of the multi-token prediction head. It has a layer that slides, without experts.
// Published models have two more heads, for the tokens after that. As in other engines, the first one drafts them too.
func (m *MiMoV2Flash) Next() string { return m.Prefix + "mtp.layers.0." }

// State implements [Model].
func (m *MiMoV2Flash) State() []LayerState {
	list := m.Dense.State()
	for i := range list {
		c, _ := m.Layer(i)
		list[i].PerToken = int64(c.KVHeads) * int64(c.HeadDim+m.ValueDim)
	}
	return list
}

// Facts implements [Model].
func (m *MiMoV2Flash) Facts() Facts { return m.facts("mimo_v2_flash", m.Rope, m.Table()) }

// Table implements [Model].
func (m *MiMoV2Flash) Table() Table {
	hidden := int64(m.Hidden)
	t := m.decoder("mimo_v2_flash", false, func(t *Table, layer string, i int) {
		c, sinks := m.Layer(i)
		t.norm(layer+"input_layernorm", hidden, false)
		m.attends(t, layer+"self_attn", c, sinks)
		t.norm(layer+"post_attention_layernorm", hidden, false)
		if m.Mixture.Sparse[i] {
			t.mixture(layer+"mlp", m.Mixture, m.Hidden)
		} else {
			m.mlp(t, layer+"mlp", m.Intermediate)
		}
	})
	m.next(&t)
	return t
}

// attends adds the projections of attention, and its sinks.
func (m *MiMoV2Flash) attends(t *Table, name string, c Common, sinks bool) {
	hidden, heads, dim := int64(m.Hidden), int64(m.Heads), int64(m.ValueDim)
	out, keys, kv := queryRows(c.Heads, c.KVHeads), keyRows(c.Heads, c.KVHeads), int64(c.KVHeads)
	t.linear(name+".q_proj", c.queries(), hidden, m.AttentionBias, out)
	t.linear(name+".k_proj", kv*int64(m.HeadDim), hidden, m.AttentionBias, keys)
	t.linear(name+".v_proj", kv*dim, hidden, m.AttentionBias, keys)
	t.linear(name+".o_proj", hidden, heads*dim, false, queryColumns(c.Heads, c.KVHeads))
	if sinks {
		s := t.add(name+".sinks", out, heads)
		s.Aliases = []string{name + ".attention_sink_bias"}
	}
}

// next adds the multi-token prediction head. Without a window there is no layer that slides, and no head.
func (m *MiMoV2Flash) next(t *Table) {
	if m.Window > 0 {
		hidden, name := int64(m.Hidden), m.Next()
		c, sinks := m.SlidingLayer()
		m.nextPart(t, name)
		m.joinNext(t, name)
		t.norm(name+"input_layernorm", hidden, false)
		m.attends(t, name+"self_attn", c, sinks)
		t.norm(name+"pre_mlp_layernorm", hidden, false)
		m.mlp(t, name+"mlp", m.Intermediate)
		t.norm(name+"final_layernorm", hidden, false)
	}
	t.leaveOut("mtp", "a further head for tokens after the next, for which the first one drafts", m.Prefix+"mtp.*")
}
