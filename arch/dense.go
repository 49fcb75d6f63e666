package arch

// Dense is the configuration that plain decoders share: grouped-query attention and a feed-forward block in every
// layer. Each model type embeds it and adds what it has beyond.
type Dense struct {
	Common
	Intermediate int
	Activation   string
	Rope         Rope
	// Window is the number of positions that a sliding layer attends to, including its own; 0 = no layer is sliding.
	Window  int
	Sliding []bool // by layer; nil if Window is 0
}

// parseDense reads the keys that plain decoders share. The rope rotates the whole head unless r.partial is set.
// activations are the names of the model's activation function, the first the canonical one.
func parseDense(top, o object, d commonDefaults, r ropeOptions, activations ...string) Dense {
	m := Dense{
		Common:       parseCommon(top, o, d),
		Intermediate: o.size("intermediate_size", 0, maxWidth),
		Activation:   o.activation("hidden_act", activations...),
	}
	m.rope(o, r)
	return m
}

// rope reads the keys of rope. It rotates the whole head unless r.partial is set.
func (m *Dense) rope(o object, r ropeOptions) {
	r.headDim = m.HeadDim
	m.Rope = parseRope(o, m.Context, r)
	if r.partial == 0 {
		m.Rope.ignorePartial(o)
	}
}

// slide sets the window and the layers that have it. If none has it there is no window.
func (m *Dense) slide(window int, sliding []bool) {
	for _, s := range sliding {
		if s && window > 0 {
			m.Window, m.Sliding = window, sliding
			return
		}
	}
	m.Window, m.Sliding = 0, nil
}

// parsed returns a configuration that was read from o, or the first error of its keys.
func parsed[M any](m *M, o object) (*M, error) {
	if err := o.failed(); err != nil {
		return nil, err
	}
	return m, nil
}

// State implements [Model].
func (m *Dense) State() []LayerState {
	return m.kvStates(m.Window, func(i int) bool { return m.Window > 0 && m.Sliding[i] })
}

// Rules implements [Model].
func (m *Dense) Rules() Rules { return genericRules(m.Layers) }

// preNorm makes the table of a decoder whose layers have a norm before attention and one before the feed-forward block.
func (m *Dense) preNorm(modelType string, offset bool) Table {
	hidden := int64(m.Hidden)
	return m.decoder(modelType, offset, func(t *Table, layer string, _ int) {
		t.norm(layer+"input_layernorm", hidden, offset)
		m.projections(t, layer+"self_attn", m.queries())
		t.norm(layer+"post_attention_layernorm", hidden, offset)
		m.mlp(t, layer+"mlp", m.Intermediate)
	})
}

// plainMLP adds a feed-forward block without a gate.
func (m *Dense) plainMLP(t *Table, up, down string) {
	hidden, wide := int64(m.Hidden), int64(m.Intermediate)
	t.linear(up, wide, hidden, m.MLPBias, column)
	t.linear(down, hidden, wide, m.MLPBias, row)
}

// slidingOf returns which layers slide.
func slidingOf(kinds []string) []bool {
	sliding := make([]bool, len(kinds))
	for i, kind := range kinds {
		sliding[i] = kind == slidingAttention
	}
	return sliding
}

// isNull reports whether a key is given as null, which for some keys means none and not their default.
func (o object) isNull(key string) bool {
	_, given := o.raw[key]
	return given && !o.has(key)
}

// limit returns a number above 0 for which null means none: 0.
func (o object) limit(key string, def float64) float64 {
	if o.isNull(key) {
		return 0
	}
	return o.above(key, def, 0)
}

// window returns a number of positions for which null means all: 0.
func (o object) window(key string, def int) int {
	if o.isNull(key) {
		return 0
	}
	return o.integer(key, def, 1, maxContext)
}

// fuses states that other checkpoints have linear layers of the table as one, whose rows are theirs in order.
func (t *Table) fuses(whole string, parts ...string) {
	for _, end := range []string{".weight", ".bias"} {
		var of []*Spec
		var rows int64
		for i := range t.Specs {
			for _, part := range parts {
				if s := &t.Specs[i]; s.Name == part+end {
					of = append(of, s)
					rows += s.Shape[0]
				}
			}
		}
		var at int64
		for _, s := range of {
			size := elements(s.Shape)
			shape := append([]int64{rows}, s.Shape[1:]...)
			s.Layout, s.Group = split, whole
			s.Forms = []Form{{
				Layout: fused, Make: Gather, Count: 1, Names: []string{whole + end}, Shapes: [][]int64{shape},
				Runs: []Run{{Begin: at, Count: size, Step: size, Times: 1}},
			}}
			at += size
		}
	}
}

// everywhere gives all layers a window; 0 = none.
func (m *Dense) everywhere(window int) {
	sliding := make([]bool, m.Layers)
	for i := range sliding {
		sliding[i] = true
	}
	m.slide(window, sliding)
}
