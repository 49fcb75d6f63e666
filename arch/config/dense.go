package config

import (
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

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

// ParseDense reads the keys that plain decoders share. The rope rotates the whole head unless r.partial is set.
// activations are the names of the model's activation function, the first the canonical one.
func ParseDense(top, o Object, d Defaults, r RopeOptions, activations ...string) Dense {
	m := Dense{
		Common:       ParseCommon(top, o, d),
		Intermediate: o.Size("intermediate_size", 0, MaxWidth),
		Activation:   o.Activation("hidden_act", activations...),
	}
	m.ReadRope(o, r)
	return m
}

// ReadRope reads the keys of rope. It rotates the whole head unless r.partial is set.
func (m *Dense) ReadRope(o Object, r RopeOptions) {
	r.HeadDim = m.HeadDim
	m.Rope = ParseRope(o, m.Context, r)
	if r.Partial == 0 {
		m.Rope.IgnorePartial(o)
	}
}

// Slide sets the window and the layers that have it. If none has it there is no window.
func (m *Dense) Slide(window int, sliding []bool) {
	for _, s := range sliding {
		if s && window > 0 {
			m.Window, m.Sliding = window, sliding
			return
		}
	}
	m.Window, m.Sliding = 0, nil
}

// Done returns a configuration that was read from o, or the first error of its keys.
func Done[M any](m *M, o Object) (*M, error) {
	if err := o.Failed(); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Dense) State() []LayerState {
	return m.KVStates(m.Window, func(i int) bool { return m.Window > 0 && m.Sliding[i] })
}

func (m *Dense) Rules() precision.Rules { return precision.Generic(m.Layers) }

// AddPlainMLP adds a feed-forward block without a gate.
func (m *Dense) AddPlainMLP(t *table.Table, up, down string) {
	hidden, wide := int64(m.Hidden), int64(m.Intermediate)
	t.Linear(up, wide, hidden, m.MLPBias, table.Outputs)
	t.Linear(down, hidden, wide, m.MLPBias, table.Inputs)
}

// IsNull reports whether a key is given as null, which for some keys means none and not their default.
func (o Object) IsNull(key string) bool {
	_, given := o.Keys[key]
	return given && !o.Has(key)
}

// Limit returns a number above 0 for which null means none: 0.
func (o Object) Limit(key string, def float64) float64 {
	if o.IsNull(key) {
		return 0
	}
	return o.Above(key, def, 0)
}

// Window returns a number of positions for which null means all: 0.
func (o Object) Window(key string, def int) int {
	if o.IsNull(key) {
		return 0
	}
	return o.Integer(key, def, 1, MaxContext)
}

// SlideEverywhere gives all layers a window; 0 = none.
func (m *Dense) SlideEverywhere(window int) {
	sliding := make([]bool, m.Layers)
	for i := range sliding {
		sliding[i] = true
	}
	m.Slide(window, sliding)
}

// AddWholeNorms adds the norms of queries and of keys, each over all heads of a row.
func (m *Dense) AddWholeNorms(t *table.Table, name string) {
	t.Add(name+".q_norm.weight", table.QueryRows(m.Heads, m.KVHeads), m.QueryWidth())
	t.Add(name+".k_norm.weight", table.KeyRows(m.Heads, m.KVHeads), int64(m.KVHeads)*int64(m.HeadDim))
}

// JoinedGateUp returns the rows of a gate and of the up projection after it.
func (m *Dense) JoinedGateUp() map[string]table.RowsOf {
	wide := int64(m.Intermediate)
	return table.Consecutive([]string{"gate_proj", "up_proj"}, wide, wide)
}
