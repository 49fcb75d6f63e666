package arch

import (
	"encoding/json"
	"fmt"
)

// NemotronNAS is the configuration of model type "nemotron-nas" (Llama Nemotron Super and Ultra): Llama with layers of
// different sizes, some without attention or without MLP. Absent keys have the defaults of its publisher's
// configuration_decilm.py; sizes are required.
type NemotronNAS struct {
	Dense
	Blocks []NASBlock // by layer
}

// NASBlock is a layer of [NemotronNAS].
type NASBlock struct {
	KVHeads      int // 0 = no attention
	Intermediate int // 0 = no MLP
}

func init() {
	register(Arch{
		ModelType:     "nemotron_nas",
		Aliases:       []string{"nemotron-nas"},
		Architectures: []string{"DeciLMForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseNemotronNAS(config) },
		Docs: Docs{
			Variants: "Llama Nemotron Super and Ultra: layers of different sizes, without attention or without MLP",
			Code:     equals("llama"),
		},
	})
}

// ParseNemotronNAS parses the config.json of a nemotron-nas model.
func ParseNemotronNAS(config []byte) (*NemotronNAS, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &NemotronNAS{Dense: Dense{
		Common: parseCommon(top, o, commonDefaults{
			class: "DeciLMForCausalLM", ctx: 2048, eps: 1e-6, bos: []int32{1}, eos: []int32{2},
		}),
		Activation: o.activation("hidden_act", silu...),
	}}
	m.rope(o, ropeOptions{})
	m.MLPBias = o.boolean("mlp_bias", false)
	const key = "block_configs"
	list := o.list(key, maxLayers)
	if len(list) != m.Layers {
		o.fail(key, fmt.Sprintf("have an element per layer, %d (it has %d)", m.Layers, len(list)))
		return parsed(m, o)
	}
	for i, text := range list {
		block := object{prefix: fmt.Sprintf("%s[%d].", key, i), err: o.err}
		if err := json.Unmarshal(text, &block.raw); err != nil || block.raw == nil {
			o.fail(key, fmt.Sprintf("hold objects (element %d is none)", i))
			break
		}
		m.Blocks = append(m.Blocks, m.block(block))
	}
	return parsed(m, o)
}

// block reads the sizes of a layer.
func (m *NemotronNAS) block(o object) (b NASBlock) {
	const each = 256 // the width of an MLP is a multiple of it
	attention, hasAttention := o.object("attention")
	ffn, hasFFN := o.object("ffn")
	switch {
	case !hasAttention:
		o.missing("attention")
		return b
	case !hasFFN:
		o.missing("ffn")
		return b
	}
	for _, part := range []object{attention, ffn} {
		part.mustBe(false, "replace_with_linear")
		for _, key := range []string{"sparsify", "window_length", "num_sink_tokens"} {
			if part.has(key) {
				part.fail(key, "be null: that is not supported")
			}
		}
	}
	if !attention.boolean("no_op", false) {
		group := attention.required("n_heads_in_group", 1, maxHeads)
		if m.Heads%group != 0 {
			attention.fail("n_heads_in_group", fmt.Sprintf("divide num_attention_heads = %d", m.Heads))
		}
		b.KVHeads = m.Heads / group
	}
	if !ffn.boolean("no_op", false) {
		if !ffn.has("ffn_mult") {
			ffn.missing("ffn_mult")
		}
		wide := 2 * ffn.above("ffn_mult", 1, 0) * float64(m.Hidden) / 3
		if wide > maxWidth {
			ffn.fail("ffn_mult", fmt.Sprintf("give a width <= %d (it is %.0f)", maxWidth, wide))
			return b
		}
		b.Intermediate = (int(wide) + each - 1) / each * each
	}
	return b
}

// Facts implements [Model].
func (m *NemotronNAS) Facts() Facts { return m.facts("nemotron_nas", m.Rope, m.Table()) }

// State implements [Model].
func (m *NemotronNAS) State() []LayerState {
	list := make([]LayerState, m.Layers)
	for i, b := range m.Blocks {
		list[i].PerToken = 2 * int64(b.KVHeads) * int64(m.HeadDim)
	}
	return list
}

// Attention returns the configuration of a layer's attention.
func (m *NemotronNAS) Attention(layer int) Common {
	c := m.Common
	c.KVHeads = m.Blocks[layer].KVHeads
	return c
}

// Table implements [Model].
func (m *NemotronNAS) Table() Table {
	hidden := int64(m.Hidden)
	return m.decoder("nemotron_nas", false, func(t *Table, layer string, i int) {
		if m.Blocks[i].KVHeads > 0 {
			t.norm(layer+"input_layernorm", hidden, false)
			m.Attention(i).projections(t, layer+"self_attn", m.queries())
		}
		if wide := m.Blocks[i].Intermediate; wide > 0 {
			t.norm(layer+"post_attention_layernorm", hidden, false)
			m.mlp(t, layer+"mlp", wide)
		}
	})
}
