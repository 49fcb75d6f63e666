package types

import (
	"fmt"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// State implements [arch.Model]. Layers that attend to another layer's keys and values have none.
func (m *Gemma4) State() []config.LayerState {
	list := make([]config.LayerState, len(m.Layer))
	for i, l := range m.Layer {
		if m.Shared(i) {
			continue
		}
		list[i].PerToken = 2 * int64(l.KVHeads) * int64(l.HeadDim)
		if l.Sliding {
			list[i].Window = int64(m.Window)
		}
	}
	return list
}

func (m *Gemma4) Facts() config.Facts { return m.FactsAs("gemma4", m.Rope, m.Table()) }

func (m *Gemma4) Table() table.Table {
	hidden := int64(m.Hidden)
	t := table.Table{ModelType: "gemma4", Parts: []table.Part{m.TextPart()}}
	t.Add(m.Prefix+"embed_tokens.weight", table.EachToken, int64(m.Vocab), hidden)
	if m.PerLayerHidden > 0 {
		packed := int64(m.Layers) * int64(m.PerLayerHidden)
		t.Add(m.Prefix+"embed_tokens_per_layer.weight", table.EachToken, int64(m.PerLayerVocab), packed)
		t.Linear(m.Prefix+"per_layer_model_projection", packed, hidden, false, table.Whole)
		t.Norm(m.Prefix+"per_layer_projection_norm", int64(m.PerLayerHidden), false)
	}
	m.layers(&t)
	m.AddEnd(&t, false)
	config.DropTowers(&t, "gemma4")
	return t
}

// layers adds the layers, and drops the keys and values of layers that attend to another's.
func (m *Gemma4) layers(t *table.Table) {
	hidden := int64(m.Hidden)
	for i, l := range m.Layer {
		layer := m.LayerName(i)
		t.Norm(layer+"input_layernorm", hidden, false)
		m.attend(t, layer+"self_attn", i, l)
		t.Norm(layer+"post_attention_layernorm", hidden, false)
		t.Norm(layer+"pre_feedforward_layernorm", hidden, false)
		m.AddMLP(t, layer+"mlp", l.Intermediate)
		if m.Experts.Count > 0 {
			t.Norm(layer+"post_feedforward_layernorm_1", hidden, false)
			t.Norm(layer+"pre_feedforward_layernorm_2", hidden, false)
			t.Add(layer+"router.scale", table.Whole, hidden)
			t.Add(layer+"router.proj.weight", table.Whole, int64(m.Experts.Count), hidden)
			t.Add(layer+"router.per_expert_scale", table.Whole, int64(m.Experts.Count))
			m.Experts.AddTo(t, layer+"experts", layer+"experts.switch_glu", m.Hidden)
			t.Norm(layer+"post_feedforward_layernorm_2", hidden, false)
		}
		t.Norm(layer+"post_feedforward_layernorm", hidden, false)
		if m.PerLayerHidden > 0 {
			t.Linear(layer+"per_layer_input_gate", int64(m.PerLayerHidden), hidden, false, table.Whole)
			t.Linear(layer+"per_layer_projection", hidden, int64(m.PerLayerHidden), false, table.Whole)
			t.Norm(layer+"post_per_layer_input_norm", hidden, false)
		}
		t.Add(layer+"layer_scalar", table.Whole, 1)
	}
}

func (m *Gemma4) attend(t *table.Table, name string, i int, l Gemma4Layer) {
	hidden, dim := int64(m.Hidden), int64(l.HeadDim)
	q, kv := int64(m.Heads)*dim, int64(l.KVHeads)*dim
	t.Linear(name+".q_proj", q, hidden, m.AttentionBias, table.QueryRows(m.Heads, l.KVHeads))
	t.Norm(name+".q_norm", dim, false)
	switch {
	case l.KV == i:
		t.Linear(name+".k_proj", kv, hidden, m.AttentionBias, table.KeyRows(m.Heads, l.KVHeads))
		t.Norm(name+".k_norm", dim, false)
		if !m.KEqV || l.Sliding {
			t.Linear(name+".v_proj", kv, hidden, m.AttentionBias, table.KeyRows(m.Heads, l.KVHeads))
		}
	case l.KV >= 0:
		reason := fmt.Sprintf("not used: layer %d attends the keys and values of layer %d", i, l.KV)
		t.Drop(reason, name+".k_proj.*", name+".v_proj.*", name+".k_norm.*")
	}
	t.Linear(name+".o_proj", hidden, q, m.OutputBias, table.QueryColumns(m.Heads, l.KVHeads))
}
