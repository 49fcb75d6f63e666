package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// MiniMax is the configuration of model type "minimax" (MiniMax-Text-01 and M1): layers of lightning attention, which
// is linear with a fixed decay for each head, or of attention, each with experts. The residual stream is what the norms
// return; it and the outputs are multiplied by factors. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type MiniMax struct {
	config.Dense
	Mixture config.Mixture
	Full    []bool // by layer: attention, else lightning attention
	// FullScale, LinearScale and NetworkScale are the factors after attention, lightning attention and experts.
	FullScale, LinearScale, NetworkScale ResidualScale
}

// ResidualScale holds the factors of the residual stream and of what is added to it.
type ResidualScale struct{ Stream, Output float64 }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "minimax",
		Aliases:       []string{"minimax_text_01", "minimax_m1"},
		Architectures: []string{"MiniMaxForCausalLM", "MiniMaxText01ForCausalLM", "MiniMaxM1ForCausalLM"},
		Docs: arch.Docs{
			Variants: "lightning attention and attention, experts named `w1` to `w3`, factors of the residual stream; " +
				"MiniMax-Text-01 and M1",
			Rules: "generic, also for experts",
		},
	}, ParseMiniMax)
}

// ParseMiniMax parses the config.json of a minimax model.
func ParseMiniMax(data []byte) (*MiniMax, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	// Published models rotate a part of each head. transformers ignores the key, and partial_rotary_factor.
	var r config.RopeOptions
	if r.Theta = 1e6; o.Has("rotary_dim") {
		r.Partial, o = 1, config.RotaryDim(o, 128)
	}
	d := config.Defaults{Class: "MiniMaxForCausalLM", KVHeads: 8, Context: 1 << 17, NormEps: 1e-5, BOS: []int32{1},
		EOS: []int32{2}}
	m := &MiniMax{Dense: config.ParseDecoder(top, o, d, r)}
	m.AttentionBias, m.OutputBias = false, false
	m.Mixture.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 8, PerToken: 2}, "intermediate_size")
	m.Mixture.Experts.NormTopK = true
	m.parseFull(o)
	m.Slide(o.Window("sliding_window", 0), m.Full)
	m.FullScale = residualScale(o, "full_attn", "layernorm_full_attention")
	m.LinearScale = residualScale(o, "linear_attn", "layernorm_linear_attention")
	m.NetworkScale = residualScale(o, "mlp", "layernorm_mlp")
	if key := "shared_intermediate_size"; o.Integer(key, 0, 0, config.MaxWidth) != 0 {
		o.Fail(key, "be 0: shared experts are not supported")
	}
	if o.Has("postnorm") && !o.Bool("postnorm", true) {
		o.Fail("postnorm", "be true")
	}
	return config.Done(m, o)
}

// parseFull reads which layers are attention: layer_types, or the list of 0 and 1 of published models. By default it is
// every other layer from the first on.
func (m *MiniMax) parseFull(o config.Object) {
	var ok bool
	if m.Full, ok = o.FullLayers("layer_types", m.Layers); ok {
		return
	}
	const key = "attn_type_list"
	list := o.Integers(key, config.MaxLayers, 0, 1)
	if o.Has(key) && len(list) != m.Layers {
		o.Fail(key, "have an element per layer")
		return
	}
	for i := range m.Full {
		m.Full[i] = i%2 == 0
		if list != nil {
			m.Full[i] = list[i] == 1
		}
	}
}

// residualScale reads factors under the names of transformers or of published models.
func residualScale(o config.Object, name, published string) ResidualScale {
	factor := func(end, old string) float64 {
		return o.Above(name+end, o.Above(published+old, 1, 0), 0)
	}
	return ResidualScale{Stream: factor("_alpha_factor", "_alpha"), Output: factor("_beta_factor", "_beta")}
}

// State implements [arch.Model]. The state of lightning attention is a matrix for each head, in float32, which counts
// as two 16-bit elements.
func (m *MiniMax) State() []config.LayerState {
	list := m.Dense.State()
	for i := range list {
		if !m.Full[i] {
			list[i] = config.LayerState{Fixed: 2 * m.QueryWidth() * int64(m.HeadDim)}
		}
	}
	return list
}

func (m *MiniMax) Facts() config.Facts { return m.FactsAs("minimax", m.Rope, m.Table()) }

func (m *MiniMax) Table() table.Table {
	heads := table.HeadRows(m.Heads)
	t := m.Decoder().OwnTable("minimax", config.Own{Mixer: func(t *table.Table, layer string, i int) bool {
		if m.Full[i] {
			return false
		}
		attention := layer + "self_attn"
		t.Linear(attention+".qkv_proj", 3*m.QueryWidth(), int64(m.Hidden), false, heads)
		t.Linear(attention+".output_gate", m.QueryWidth(), int64(m.Hidden), false, heads)
		t.Add(attention+".norm.weight", heads, m.QueryWidth())
		t.Linear(attention+".out_proj", int64(m.Hidden), m.QueryWidth(), false, table.HeadColumns(m.Heads))
		return true
	}})
	t.Also(table.BlockSparse...)
	for _, part := range []string{"slope_rate", "query_decay", "key_decay", "diagonal_decay"} {
		t.Drop("decays follow from the number of heads and layers", m.Prefix+"layers.*.self_attn."+part)
	}
	return t
}

// Decoder implements [arch.Described].
func (m *MiniMax) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture}
}
