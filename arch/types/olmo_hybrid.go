package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

// OlmoHybrid is the configuration of model type "olmo_hybrid": gated delta nets after their norms, as in Llama, and
// attention as in olmo2, with or without a rope. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type OlmoHybrid struct {
	config.Dense
	Full    []bool // by layer: attention, else a gated delta net
	Rotates bool   // attention has a rope
	Delta   config.GatedDelta
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "olmo_hybrid",
		Architectures: []string{"OlmoHybridForCausalLM"},
		Docs: arch.Docs{
			Variants: "gated delta nets, with or without negative eigenvalues, and attention with or without a rope",
			Rules:    qwen35RulesDoc,
		},
	}, ParseOlmoHybrid)
}

// ParseOlmoHybrid parses the config.json of an olmo_hybrid model.
func ParseOlmoHybrid(data []byte) (*OlmoHybrid, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "OlmoHybridForCausalLM", Context: 65536, NormEps: 1e-6, EOS: []int32{100257}}
	m := &OlmoHybrid{Dense: config.ParseDense(top, o, d, config.RopeOptions{}, config.SiLU...)}
	// Published models have no rope: their theta is null.
	in, _ := o.Object("rope_parameters")
	m.Rotates = !in.IsNull("rope_theta") && !o.IsNull("rope_theta")
	m.Full = m.parseFull(o)
	m.Delta = config.GatedDelta{
		KeyHeads:   o.Integer("linear_num_key_heads", m.Heads, 1, config.MaxHeads),
		ValueHeads: o.Integer("linear_num_value_heads", m.Heads, 1, config.MaxHeads),
		Kernel:     o.Integer("linear_conv_kernel_dim", 4, 2, config.MaxTaps),
		Negative:   o.Bool("linear_allow_neg_eigval", true),
	}
	m.Delta.KeyDim = o.Integer("linear_key_head_dim", max(3*m.Hidden/(4*m.Delta.KeyHeads), 1), 1, config.MaxHeadDim)
	m.Delta.ValueDim = o.Integer("linear_value_head_dim", 2*m.Delta.KeyDim, 1, config.MaxHeadDim)
	m.Delta.Check(o)
	return config.Done(m, o)
}

// parseFull reads which layers are attention: by default every fourth, or if there is none the last.
func (m *OlmoHybrid) parseFull(o config.Object) []bool {
	if full, ok := o.FullLayers("layer_types", m.Layers); ok {
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

func (m *OlmoHybrid) State() []config.LayerState { return m.HybridStates(m.Full, m.Delta.LayerState()) }

func (m *OlmoHybrid) Facts() config.Facts { return m.FactsAs("olmo_hybrid", m.Rope, m.Table()) }

func (m *OlmoHybrid) Rules() precision.Rules {
	return config.DeltaRules(m.Layers, ".a_proj.weight", ".b_proj.weight")
}

func (m *OlmoHybrid) Table() table.Table {
	hidden := int64(m.Hidden)
	// Published checkpoints have other names for the norms of delta nets. transformers writes the second one for
	// attention, too.
	norm := func(t *table.Table, name, alias string) {
		t.Add(name+".weight", table.Whole, hidden).Aliases = []string{alias + ".weight"}
	}
	return m.TableOf("olmo_hybrid", false, func(t *table.Table, layer string, i int) {
		if m.Full[i] {
			m.AddProjections(t, layer+"self_attn", m.QueryWidth())
			m.AddWholeNorms(t, layer+"self_attn")
		} else {
			norm(t, layer+"input_layernorm", layer+"attention_layer_norm")
			splitDelta(t, layer+"linear_attn", m.Delta, hidden)
		}
		norm(t, layer+"post_attention_layernorm", layer+"feedforward_layer_norm")
		m.AddMLP(t, layer+"mlp", m.Intermediate)
		if m.Full[i] {
			t.Norm(layer+"post_feedforward_layernorm", hidden, false)
		}
	})
}

// splitDelta adds a gated delta net whose projections are apart. Its convolution is published as three tensors, of
// queries, keys and values.
func splitDelta(t *table.Table, name string, d config.GatedDelta, hidden int64) {
	heads, keys, values := table.HeadRows(d.KeyHeads), int64(d.Keys()), int64(d.Values())
	t.Linear(name+".q_proj", keys, hidden, false, heads)
	t.Linear(name+".k_proj", keys, hidden, false, heads)
	t.Linear(name+".v_proj", values, hidden, false, heads)
	t.Linear(name+".g_proj", values, hidden, false, heads)
	t.Linear(name+".a_proj", int64(d.ValueHeads), hidden, false, heads)
	t.Linear(name+".b_proj", int64(d.ValueHeads), hidden, false, heads)
	d.AddSplitConv(t, name)
	t.Add(name+".A_log", heads, int64(d.ValueHeads))
	t.Add(name+".dt_bias", heads, int64(d.ValueHeads))
	t.Norm(name+".o_norm", int64(d.ValueDim), false)
	t.Linear(name+".o_proj", hidden, values, false, table.HeadColumns(d.KeyHeads))
}
