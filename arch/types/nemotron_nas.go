package types

import (
	"encoding/json"
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// NemotronNAS is the configuration of model type "nemotron-nas" (Llama Nemotron Super and Ultra): Llama with layers of
// different sizes, some without attention or without MLP. Absent keys have the defaults of its publisher's
// configuration_decilm.py; sizes are required.
type NemotronNAS struct {
	config.Dense
	Blocks []NASBlock // by layer
}

// NASBlock is a layer of [NemotronNAS].
type NASBlock struct {
	KVHeads      int // 0 = no attention
	Intermediate int // 0 = no MLP
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "nemotron_nas",
		Aliases:       []string{"nemotron-nas"},
		Architectures: []string{"DeciLMForCausalLM"},
		Docs: arch.Docs{
			Variants: "Llama Nemotron Super and Ultra: layers of different sizes, without attention or without MLP",
			Code:     equals("llama"),
		},
	}, ParseNemotronNAS)
}

// ParseNemotronNAS parses the config.json of a nemotron-nas model.
func ParseNemotronNAS(data []byte) (*NemotronNAS, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &NemotronNAS{Dense: config.Dense{
		Common: config.ParseCommon(top, o, config.Defaults{
			Class: "DeciLMForCausalLM", Context: 2048, NormEps: 1e-6, BOS: []int32{1}, EOS: []int32{2},
		}),
		Activation: o.Activation("hidden_act", config.SiLU...),
	}}
	m.ReadRope(o, config.RopeOptions{})
	m.MLPBias = o.Bool("mlp_bias", false)
	const key = "block_configs"
	list := o.List(key, config.MaxLayers)
	if len(list) != m.Layers {
		o.Fail(key, fmt.Sprintf("have an element per layer, %d (it has %d)", m.Layers, len(list)))
		return config.Done(m, o)
	}
	for i, text := range list {
		block := config.Object{Prefix: fmt.Sprintf("%s[%d].", key, i), Err: o.Err}
		if err := json.Unmarshal(text, &block.Keys); err != nil || block.Keys == nil {
			o.Fail(key, fmt.Sprintf("hold objects (element %d is none)", i))
			break
		}
		m.Blocks = append(m.Blocks, m.block(block))
	}
	return config.Done(m, o)
}

// block reads the sizes of a layer.
func (m *NemotronNAS) block(o config.Object) (b NASBlock) {
	const each = 256 // the width of an MLP is a multiple of it
	attention, hasAttention := o.Object("attention")
	ffn, hasFFN := o.Object("ffn")
	switch {
	case !hasAttention:
		o.Missing("attention")
		return b
	case !hasFFN:
		o.Missing("ffn")
		return b
	}
	for _, part := range []config.Object{attention, ffn} {
		part.MustBe(false, "replace_with_linear")
		for _, key := range []string{"sparsify", "window_length", "num_sink_tokens"} {
			if part.Has(key) {
				part.Fail(key, "be null: that is not supported")
			}
		}
	}
	if !attention.Bool("no_op", false) {
		group := attention.Required("n_heads_in_group", 1, config.MaxHeads)
		if m.Heads%group != 0 {
			attention.Fail("n_heads_in_group", fmt.Sprintf("divide num_attention_heads = %d", m.Heads))
		}
		b.KVHeads = m.Heads / group
	}
	if !ffn.Bool("no_op", false) {
		if !ffn.Has("ffn_mult") {
			ffn.Missing("ffn_mult")
		}
		wide := 2 * ffn.Above("ffn_mult", 1, 0) * float64(m.Hidden) / 3
		if wide > config.MaxWidth {
			ffn.Fail("ffn_mult", fmt.Sprintf("give a width <= %d (it is %.0f)", config.MaxWidth, wide))
			return b
		}
		b.Intermediate = (int(wide) + each - 1) / each * each
	}
	return b
}

func (m *NemotronNAS) Facts() config.Facts { return m.FactsAs("nemotron_nas", m.Rope, m.Table()) }

func (m *NemotronNAS) State() []config.LayerState {
	list := make([]config.LayerState, m.Layers)
	for i, b := range m.Blocks {
		list[i].PerToken = 2 * int64(b.KVHeads) * int64(m.HeadDim)
	}
	return list
}

// Attention returns the configuration of a layer's attention.
func (m *NemotronNAS) Attention(layer int) config.Common {
	c := m.Common
	c.KVHeads = m.Blocks[layer].KVHeads
	return c
}

func (m *NemotronNAS) Table() table.Table {
	hidden := int64(m.Hidden)
	return m.TableOf("nemotron_nas", false, func(t *table.Table, layer string, i int) {
		if m.Blocks[i].KVHeads > 0 {
			t.Norm(layer+"input_layernorm", hidden, false)
			m.Attention(i).AddProjections(t, layer+"self_attn", m.QueryWidth())
		}
		if wide := m.Blocks[i].Intermediate; wide > 0 {
			t.Norm(layer+"post_attention_layernorm", hidden, false)
			m.AddMLP(t, layer+"mlp", wide)
		}
	})
}
