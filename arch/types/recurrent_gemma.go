package types

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

// RecurrentGemma is the configuration of model type "recurrent_gemma": layers of a gated linear recurrence (RG-LRU) or
// of attention with a sliding window. Norm weights are used as 1 + w in float32. Absent keys have the defaults of
// transformers 5.23; sizes are required.
type RecurrentGemma struct {
	config.Dense
	Full    []bool // by layer: attention, else a recurrence
	Width   int    // of the recurrence
	Kernel  int    // size of its convolution
	SoftCap float64
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "recurrent_gemma",
		Architectures: []string{"RecurrentGemmaForCausalLM"},
		Names:         []string{"attention_window_size", "sliding_window"},
		Docs: arch.Docs{
			Variants: "RG-LRU layers with some of attention with a sliding window; widths of the recurrence, untied embeddings",
			Rules:    "generic; the gates of the recurrence keep their type",
		},
	}, ParseRecurrentGemma)
}

// ParseRecurrentGemma parses the config.json of a recurrent_gemma model.
func ParseRecurrentGemma(data []byte) (*RecurrentGemma, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{
		Class: "RecurrentGemmaForCausalLM", Context: 8192, NormEps: 1e-6, Tied: true, BOS: []int32{2}, EOS: []int32{1},
	}
	m := &RecurrentGemma{Dense: config.Dense{
		Common: config.ParseCommon(top, o, d),
		// The feed-forward block's two halves are counted together.
		Intermediate: o.Size("intermediate_size", 0, config.MaxWidth) / 2,
		Activation:   o.Activation("hidden_activation", config.GELU...),
	}}
	m.NormName = "final_norm"
	m.MLPBias, m.OutputBias = true, true
	m.ReadRope(o, config.RopeOptions{Partial: 0.5, Types: []config.RopeType{config.RopeDefault}})
	m.Width = o.Integer("lru_width", m.Hidden, 1, config.MaxWidth)
	m.Kernel = o.Integer("conv1d_width", 4, 2, config.MaxTaps)
	m.SoftCap = o.Limit("logits_soft_cap", 30)
	if m.Intermediate < 1 {
		o.Fail("intermediate_size", "be at least 2: it counts both halves")
	}
	if m.Width%m.Heads != 0 {
		o.Fail("lru_width", fmt.Sprintf("be a multiple of num_attention_heads = %d", m.Heads))
	}
	m.parseBlocks(o)
	m.Slide(o.Integer("attention_window_size", 2048, 1, config.MaxContext), m.Full)
	return config.Done(m, o)
}

// parseBlocks reads the types of the first layers, which repeat.
func (m *RecurrentGemma) parseBlocks(o config.Object) {
	const key, recurrent = "block_types", "recurrent"
	kinds := o.Strings(key)
	if !o.Has(key) {
		kinds = []string{recurrent, recurrent, config.AttentionLayer}
	}
	if len(kinds) == 0 {
		o.Fail(key, "not be empty")
		return
	}
	for _, kind := range kinds {
		if kind != recurrent && kind != config.AttentionLayer {
			o.Fail(key, fmt.Sprintf("hold %s and %s only", recurrent, config.AttentionLayer))
		}
	}
	m.Full = make([]bool, m.Layers)
	for i := range m.Full {
		m.Full[i] = kinds[i%len(kinds)] == config.AttentionLayer
	}
}

// State implements [arch.Model]. The state of a recurrence is in float32, which counts as two 16-bit elements.
func (m *RecurrentGemma) State() []config.LayerState {
	list := m.Dense.State()
	for i := range list {
		if !m.Full[i] {
			list[i] = config.LayerState{Fixed: 2*int64(m.Width) + int64(m.Kernel-1)*int64(m.Width)}
		}
	}
	return list
}

func (m *RecurrentGemma) Facts() config.Facts { return m.FactsAs("recurrent_gemma", m.Rope, m.Table()) }

// Rules implements [arch.Model]. The gates control how long the state remembers, and have a matrix for each head, which
// is multiplied by the rows of its head only.
func (m *RecurrentGemma) Rules() precision.Rules {
	return precision.Generic(m.Layers, precision.Rule{
		Name: "decay of a recurrence", Of: precision.Casts, To: []precision.Target{precision.Source},
		Ends: []string{".rg_lru.recurrent_param"},
	}, precision.Rule{
		Name: "gates of a recurrence", Of: precision.Quantized, To: []precision.Target{precision.Source},
		Has: []string{".rg_lru."},
	})
}

func (m *RecurrentGemma) Table() table.Table {
	hidden, width, kernel := int64(m.Hidden), int64(m.Width), int64(m.Kernel)
	heads, dim := int64(m.Heads), int64(m.Width/m.Heads)
	by, in := table.HeadRows(m.Heads), table.HeadColumns(m.Heads)
	return m.TableOf("recurrent_gemma", true, func(t *table.Table, layer string, i int) {
		block := layer + "temporal_block"
		t.Norm(layer+"temporal_pre_norm", hidden, true)
		if m.Full[i] {
			m.AddProjections(t, block, m.QueryWidth())
		} else {
			t.Linear(block+".linear_x", width, hidden, true, by)
			t.Linear(block+".linear_y", width, hidden, true, by)
			t.Add(block+".conv_1d.weight", by, width, 1, kernel).Reshape = [][]int64{{width, kernel, 1}, {width, kernel}}
			t.Add(block+".conv_1d.bias", by, width)
			for _, gate := range []string{"input", "recurrent"} {
				t.Add(block+".rg_lru."+gate+"_gate_weight", by, heads, dim, dim)
				t.Add(block+".rg_lru."+gate+"_gate_bias", by, heads, dim)
			}
			t.Add(block+".rg_lru.recurrent_param", by, width)
			t.Linear(block+".linear_out", hidden, width, true, in)
		}
		t.Norm(layer+"channel_pre_norm", hidden, true)
		m.AddMLP(t, layer+"mlp_block", m.Intermediate)
	})
}
