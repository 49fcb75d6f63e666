package arch

import (
	"encoding/json"
	"fmt"
)

// Rwkv7 is the configuration of model type "rwkv7": all layers are a recurrence with a state of fixed size, and a
// feed-forward block that also reads the row before. Absent keys have the defaults of flash-linear-attention; sizes are
// required.
type Rwkv7 struct {
	Common              // Heads of HeadDim channels fill the hidden size
	Intermediate int    // of the feed-forward block
	First        bool   // norm_first: the first layer has a norm before all
	NormBias     bool   // biases of the norms
	Decay        int    // ranks of the products that give decays,
	Rate         int    // rates,
	Value        int    // the parts of the first layer's values,
	GateRank     int    // and gates
	Act          string // always "sqrelu"
}

func init() {
	register(Arch{
		ModelType:     "rwkv7",
		Architectures: []string{"RWKV7ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseRwkv7(config) },
		GGUF:          []GGUF{ggufRwkv7},
		Docs: Docs{
			Variants: "layout of flash-linear-attention, in which `RWKV/RWKV7-*` are published",
			Rules:    "generic; the products that give decays, rates and gates get 8 bits",
			Code:     "[mlx-lm](https://github.com/ml-explore/mlx-lm/blob/v0.32.2/mlx_lm/models/rwkv7.py)",
		},
	})
}

// ParseRwkv7 parses the config.json of an rwkv7 model.
func ParseRwkv7(config []byte) (*Rwkv7, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	o = o.called("rms_norm_eps", "norm_eps")
	hidden := o.required("hidden_size", 1, maxWidth)
	dim := 64
	if !o.has("head_dim") && o.has("num_heads") {
		dim = max(1, hidden/o.integer("num_heads", 1, 1, maxHeads))
	}
	dim = o.integer("head_dim", dim, 1, maxHeadDim)
	if hidden%dim != 0 {
		o.fail("head_dim", fmt.Sprintf("divide hidden_size = %d", hidden))
	}
	o.set("head_dim", dim)
	o.set("num_attention_heads", max(1, hidden/dim))
	o.set("num_key_value_heads", max(1, hidden/dim))
	m := &Rwkv7{
		Common: parseCommon(top, o, commonDefaults{
			class: "RWKV7ForCausalLM", ctx: 2048, eps: 1e-5, bos: []int32{1}, eos: []int32{2},
		}),
		First:    o.boolean("norm_first", true),
		NormBias: o.boolean("norm_bias", true),
		Decay:    o.integer("decay_low_rank_dim", 64, 1, maxWidth),
		Rate:     o.integer("a_low_rank_dim", 64, 1, maxWidth),
		Value:    o.integer("v_low_rank_dim", 16, 1, maxWidth),
		GateRank: o.integer("gate_low_rank_dim", 128, 1, maxWidth),
		Act:      o.activation("hidden_act", "sqrelu", "relu2"),
	}
	m.EmbedName = "embeddings"
	if o.has("intermediate_size") {
		m.Intermediate = o.integer("intermediate_size", 0, 1, maxWidth)
	} else {
		wide := int(o.above("hidden_ratio", 4, 0) * float64(hidden))
		if m.Intermediate = (wide + 31) / 32 * 32; wide < 1 || m.Intermediate > maxWidth {
			o.fail("hidden_ratio", fmt.Sprintf("give a width from 1 to %d", maxWidth))
		}
	}
	m.sameValues(o)
	if o.has("attn") {
		o.fail("attn", "be null: layers of attention are not supported")
	}
	return parsed(m, o)
}

// sameValues checks that all layers have values of the hidden size.
func (m *Rwkv7) sameValues(o object) {
	if !o.has("value_dim") {
		return
	}
	widths := []int{}
	if raw := o.raw["value_dim"]; json.Valid(raw) && raw[0] == '[' {
		widths = o.integers("value_dim", maxLayers, 1, maxWidth)
	} else {
		widths = append(widths, o.integer("value_dim", m.Hidden, 1, maxWidth))
	}
	for _, width := range widths {
		if width != m.Hidden {
			o.fail("value_dim", fmt.Sprintf("be hidden_size = %d in all layers", m.Hidden))
			return
		}
	}
}

// State implements [Model]. Each layer keeps the row before and a matrix for each head, and the row before of its
// feed-forward block.
func (m *Rwkv7) State() []LayerState {
	var list []LayerState
	row := int64(m.Hidden)
	for range m.Layers {
		list = append(list, LayerState{Fixed: row * int64(1+m.HeadDim)}, LayerState{Fixed: row})
	}
	return list
}

// Facts implements [Model].
func (m *Rwkv7) Facts() Facts { return m.facts("rwkv7", noRope, m.Table()) }

// Rules implements [Model].
func (m *Rwkv7) Rules() Rules {
	return genericRules(m.Layers, Rule{
		Name: "gives decays, rates or gates", Of: Quantized, Has: []string{"_lora.lora."}, Ends: []string{".weight"},
		Not: []string{".lora.0.weight"}, To: []Target{EightBit, Source},
	})
}

// Table implements [Model].
func (m *Rwkv7) Table() Table {
	hidden := int64(m.Hidden)
	norm := func(t *Table, name string) {
		t.norm(name, hidden, false)
		if m.NormBias {
			t.add(name+".bias", replicated, hidden)
		}
	}
	return m.decoderWith("rwkv7", norm, func(t *Table, layer string, i int) {
		if m.First && i == 0 {
			norm(t, layer+"pre_norm")
		}
		norm(t, layer+"attn_norm")
		m.mixer(t, layer+"attn", i)
		norm(t, layer+"ffn_norm")
		t.add(layer+"ffn.x_k", replicated, hidden).Reshape = [][]int64{{1, 1, hidden}}
		t.linear(layer+"ffn.key", int64(m.Intermediate), hidden, false, column)
		t.linear(layer+"ffn.value", hidden, int64(m.Intermediate), false, row)
	})
}

// mixer adds the tensors of a layer's recurrence. Ranks divide its heads.
func (m *Rwkv7) mixer(t *Table, name string, layer int) {
	hidden, heads := int64(m.Hidden), headRows(m.Heads)
	for i, part := range []string{"r", "w", "k", "v", "a", "g"} {
		s := t.add(name+".x_"+part, replicated, hidden)
		s.Reshape = [][]int64{{1, 1, hidden}}
		// The first files have one tensor of the six.
		s.Layout, s.Group = split, name+".x_x"
		s.Forms = []Form{{
			Layout: fused, Make: Gather, Count: 1, Names: []string{name + ".x_x"}, Shapes: [][]int64{{6, hidden}},
			Runs: []Run{{Begin: int64(i) * hidden, Count: hidden, Step: hidden, Times: 1}},
		}}
	}
	perHead := [][]int64{{int64(m.Heads), int64(m.HeadDim)}, {1, 1, hidden}}
	t.add(name+".k_k", heads, hidden).Reshape = perHead
	t.add(name+".k_a", heads, hidden).Reshape = perHead
	t.add(name+".r_k", heads, int64(m.Heads), int64(m.HeadDim)).Reshape = [][]int64{{hidden}}
	for _, part := range []string{".r_proj", ".k_proj", ".v_proj"} {
		t.linear(name+part, hidden, hidden, false, heads)
	}
	t.linear(name+".o_proj", hidden, hidden, false, headColumns(m.Heads))
	m.product(t, name+".w_lora", m.Decay, true)
	m.product(t, name+".a_lora", m.Rate, true)
	m.product(t, name+".g_lora", m.GateRank, false)
	if layer > 0 {
		m.product(t, name+".v_lora", m.Value, true)
	} else {
		t.drop("not used: these values are the first", name+".v_lora.*")
	}
	t.add(name+".g_norm.weight", heads, hidden).Reshape = perHead
	t.add(name+".g_norm.bias", heads, hidden).Reshape = perHead
}

// product adds the two matrices of a product of low rank, for all heads.
func (m *Rwkv7) product(t *Table, name string, rank int, bias bool) {
	t.linear(name+".lora.0", int64(rank), int64(m.Hidden), false, replicated)
	t.linear(name+".lora.2", int64(m.Hidden), int64(rank), bias, headRows(m.Heads))
}
