package arch

import "fmt"

// RecurrentGemma is the configuration of model type "recurrent_gemma": layers of a gated linear recurrence (RG-LRU) or
// of attention with a sliding window. Norm weights are used as 1 + w in float32. Absent keys have the defaults of
// transformers 5.23; sizes are required.
type RecurrentGemma struct {
	Dense
	Full    []bool // by layer: attention, else a recurrence
	Width   int    // of the recurrence
	Kernel  int    // size of its convolution
	SoftCap float64
}

func init() {
	register(Arch{
		ModelType:     "recurrent_gemma",
		Architectures: []string{"RecurrentGemmaForCausalLM"},
		Names:         []string{"attention_window_size", "sliding_window"},
		Parse:         func(config []byte) (Model, error) { return ParseRecurrentGemma(config) },
		Docs: Docs{
			Variants: "RG-LRU layers with some of attention with a sliding window; widths of the recurrence, untied embeddings",
			Rules:    "generic; the gates of the recurrence keep their type",
		},
	})
}

// ParseRecurrentGemma parses the config.json of a recurrent_gemma model.
func ParseRecurrentGemma(config []byte) (*RecurrentGemma, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{
		class: "RecurrentGemmaForCausalLM", ctx: 8192, eps: 1e-6, tied: true, bos: []int32{2}, eos: []int32{1},
	}
	m := &RecurrentGemma{Dense: Dense{
		Common: parseCommon(top, o, d),
		// The feed-forward block's two halves are counted together.
		Intermediate: o.size("intermediate_size", 0, maxWidth) / 2,
		Activation:   o.activation("hidden_activation", gelu...),
	}}
	m.NormName = "final_norm"
	m.MLPBias, m.OutputBias = true, true
	m.rope(o, ropeOptions{partial: 0.5, types: []RopeType{RopeDefault}})
	m.Width = o.integer("lru_width", m.Hidden, 1, maxWidth)
	m.Kernel = o.integer("conv1d_width", 4, 2, maxTaps)
	m.SoftCap = o.limit("logits_soft_cap", 30)
	if m.Intermediate < 1 {
		o.fail("intermediate_size", "be at least 2: it counts both halves")
	}
	if m.Width%m.Heads != 0 {
		o.fail("lru_width", fmt.Sprintf("be a multiple of num_attention_heads = %d", m.Heads))
	}
	m.parseBlocks(o)
	m.slide(o.integer("attention_window_size", 2048, 1, maxContext), m.Full)
	return parsed(m, o)
}

// parseBlocks reads the types of the first layers, which repeat.
func (m *RecurrentGemma) parseBlocks(o object) {
	const key, recurrent = "block_types", "recurrent"
	kinds := o.strs(key)
	if !o.has(key) {
		kinds = []string{recurrent, recurrent, attentionLayer}
	}
	if len(kinds) == 0 {
		o.fail(key, "not be empty")
		return
	}
	for _, kind := range kinds {
		if kind != recurrent && kind != attentionLayer {
			o.fail(key, fmt.Sprintf("hold %s and %s only", recurrent, attentionLayer))
		}
	}
	m.Full = make([]bool, m.Layers)
	for i := range m.Full {
		m.Full[i] = kinds[i%len(kinds)] == attentionLayer
	}
}

// State implements [Model]. The state of a recurrence is in float32, which counts as two 16-bit elements.
func (m *RecurrentGemma) State() []LayerState {
	list := m.Dense.State()
	for i := range list {
		if !m.Full[i] {
			list[i] = LayerState{Fixed: 2*int64(m.Width) + int64(m.Kernel-1)*int64(m.Width)}
		}
	}
	return list
}

// Facts implements [Model].
func (m *RecurrentGemma) Facts() Facts { return m.facts("recurrent_gemma", m.Rope, m.Table()) }

// Rules implements [Model]. The gates control how long the state remembers, and have a matrix for each head, which is
// multiplied by the rows of its head only.
func (m *RecurrentGemma) Rules() Rules {
	return genericRules(m.Layers, Rule{
		Name: "decay of a recurrence", Of: Casts, To: []Target{Source}, Ends: []string{".rg_lru.recurrent_param"},
	}, Rule{
		Name: "gates of a recurrence", Of: Quantized, To: []Target{Source}, Has: []string{".rg_lru."},
	})
}

// Table implements [Model].
func (m *RecurrentGemma) Table() Table {
	hidden, width, kernel := int64(m.Hidden), int64(m.Width), int64(m.Kernel)
	heads, dim := int64(m.Heads), int64(m.Width/m.Heads)
	by, in := headRows(m.Heads), headColumns(m.Heads)
	return m.decoder("recurrent_gemma", true, func(t *Table, layer string, i int) {
		block := layer + "temporal_block"
		t.norm(layer+"temporal_pre_norm", hidden, true)
		if m.Full[i] {
			m.projections(t, block, m.queries())
		} else {
			t.linear(block+".linear_x", width, hidden, true, by)
			t.linear(block+".linear_y", width, hidden, true, by)
			t.add(block+".conv_1d.weight", by, width, 1, kernel).Reshape = [][]int64{{width, kernel, 1}, {width, kernel}}
			t.add(block+".conv_1d.bias", by, width)
			for _, gate := range []string{"input", "recurrent"} {
				t.add(block+".rg_lru."+gate+"_gate_weight", by, heads, dim, dim)
				t.add(block+".rg_lru."+gate+"_gate_bias", by, heads, dim)
			}
			t.add(block+".rg_lru.recurrent_param", by, width)
			t.linear(block+".linear_out", hidden, width, true, in)
		}
		t.norm(layer+"channel_pre_norm", hidden, true)
		m.mlp(t, layer+"mlp_block", m.Intermediate)
	})
}
