package arch

import "slices"

// OlmoHybrid is the configuration of model type "olmo_hybrid": gated delta nets after their norms, as in Llama, and
// attention as in olmo2, with or without a rope. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type OlmoHybrid struct {
	Dense
	Full    []bool // by layer: attention, else a gated delta net
	Rotates bool   // attention has a rope
	Delta   GatedDelta
}

func init() {
	register(Arch{
		ModelType:     "olmo_hybrid",
		Architectures: []string{"OlmoHybridForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseOlmoHybrid(config) },
		Docs: Docs{
			Variants: "gated delta nets, with or without negative eigenvalues, and attention with or without a rope",
			Rules:    qwen35RulesDoc,
		},
	})
}

// ParseOlmoHybrid parses the config.json of an olmo_hybrid model.
func ParseOlmoHybrid(config []byte) (*OlmoHybrid, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "OlmoHybridForCausalLM", ctx: 65536, eps: 1e-6, eos: []int32{100257}}
	m := &OlmoHybrid{Dense: parseDense(top, o, d, ropeOptions{}, silu...)}
	// Published models have no rope: their theta is null.
	in, _ := o.object("rope_parameters")
	m.Rotates = !in.isNull("rope_theta") && !o.isNull("rope_theta")
	m.Full = m.parseFull(o)
	m.Delta = GatedDelta{
		KeyHeads:   o.integer("linear_num_key_heads", m.Heads, 1, maxHeads),
		ValueHeads: o.integer("linear_num_value_heads", m.Heads, 1, maxHeads),
		Kernel:     o.integer("linear_conv_kernel_dim", 4, 2, maxTaps),
		Negative:   o.boolean("linear_allow_neg_eigval", true),
	}
	m.Delta.KeyDim = o.integer("linear_key_head_dim", max(3*m.Hidden/(4*m.Delta.KeyHeads), 1), 1, maxHeadDim)
	m.Delta.ValueDim = o.integer("linear_value_head_dim", 2*m.Delta.KeyDim, 1, maxHeadDim)
	m.Delta.check(o)
	return parsed(m, o)
}

// parseFull reads which layers are attention: by default every fourth, or if there is none the last.
func (m *OlmoHybrid) parseFull(o object) []bool {
	if full, ok := o.hybrid("layer_types", m.Layers); ok {
		return full
	}
	full := make([]bool, m.Layers)
	for i := range full {
		full[i] = i%4 == 3
	}
	if !slices.Contains(full, true) {
		full[m.Layers-1] = true
	}
	return full
}

// State implements [Model].
func (m *OlmoHybrid) State() []LayerState { return m.hybridStates(m.Full, m.Delta.state()) }

// Facts implements [Model].
func (m *OlmoHybrid) Facts() Facts { return m.facts("olmo_hybrid", m.Rope, m.Table()) }

// Rules implements [Model].
func (m *OlmoHybrid) Rules() Rules { return deltaRules(m.Layers, ".a_proj.weight", ".b_proj.weight") }

// Table implements [Model].
func (m *OlmoHybrid) Table() Table {
	hidden := int64(m.Hidden)
	// Published checkpoints have other names for the norms of delta nets. transformers writes the second one for
	// attention, too.
	norm := func(t *Table, name, alias string) {
		t.add(name+".weight", replicated, hidden).Aliases = []string{alias + ".weight"}
	}
	return m.decoder("olmo_hybrid", false, func(t *Table, layer string, i int) {
		if m.Full[i] {
			m.projections(t, layer+"self_attn", m.queries())
			m.wholeNorms(t, layer+"self_attn")
		} else {
			norm(t, layer+"input_layernorm", layer+"attention_layer_norm")
			t.splitDelta(layer+"linear_attn", m.Delta, hidden)
		}
		norm(t, layer+"post_attention_layernorm", layer+"feedforward_layer_norm")
		m.mlp(t, layer+"mlp", m.Intermediate)
		if m.Full[i] {
			t.norm(layer+"post_feedforward_layernorm", hidden, false)
		}
	})
}

// splitDelta adds a gated delta net whose projections are apart. Its convolution is published as three tensors, of
// queries, keys and values.
func (t *Table) splitDelta(name string, d GatedDelta, hidden int64) {
	heads, keys, values := headRows(d.KeyHeads), int64(d.Keys()), int64(d.Values())
	t.linear(name+".q_proj", keys, hidden, false, heads)
	t.linear(name+".k_proj", keys, hidden, false, heads)
	t.linear(name+".v_proj", values, hidden, false, heads)
	t.linear(name+".g_proj", values, hidden, false, heads)
	t.linear(name+".a_proj", int64(d.ValueHeads), hidden, false, heads)
	t.linear(name+".b_proj", int64(d.ValueHeads), hidden, false, heads)
	t.splitConv(name, d)
	t.add(name+".A_log", heads, int64(d.ValueHeads))
	t.add(name+".dt_bias", heads, int64(d.ValueHeads))
	t.norm(name+".o_norm", int64(d.ValueDim), false)
	t.linear(name+".o_proj", hidden, values, false, headColumns(d.KeyHeads))
}

// splitConv adds the convolution of a gated delta net that is published as three tensors. transformers 5.23 writes
// these with a third of the channels each, whatever the sizes of keys and values are; mlx-lm swaps the last two axes.
func (t *Table) splitConv(name string, d GatedDelta) {
	keys, values, kernel := int64(d.Keys()), int64(d.Values()), int64(d.Kernel)
	by := headRows(d.KeyHeads)
	by.Sections = []int64{keys, keys, values}
	channels := 2*keys + values
	s := t.add(name+".conv1d.weight", by, channels, 1, kernel)
	s.Reshape = [][]int64{{channels, kernel, 1}, {channels, kernel}}
	s.Layout = fused
	names := []string{name + ".q_conv1d.weight", name + ".k_conv1d.weight", name + ".v_conv1d.weight"}
	form := func(layout string, rows ...int64) {
		for _, shape := range [][]int64{{1, kernel}, {kernel, 1}} {
			f := Form{Layout: layout, Make: Stack, Count: 1, Names: names}
			for _, n := range rows {
				f.Shapes = append(f.Shapes, []int64{n, shape[0], shape[1]})
			}
			s.Forms = append(s.Forms, f)
		}
	}
	form(split, keys, keys, values)
	if third := (channels + 2) / 3; values != keys && channels > 2*third {
		form(inThirds, third, third, channels-2*third)
	}
}
