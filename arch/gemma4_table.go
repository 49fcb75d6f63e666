package arch

import "fmt"

// State implements [Model]. Layers that attend to another layer's keys and values have none.
func (m *Gemma4) State() []LayerState {
	list := make([]LayerState, len(m.Layer))
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

// Facts implements [Model].
func (m *Gemma4) Facts() Facts { return m.facts("gemma4", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Gemma4) Table() Table {
	hidden := int64(m.Hidden)
	t := Table{ModelType: "gemma4", Parts: []Part{m.textPart()}}
	t.add(m.Prefix+"embed_tokens.weight", byToken, int64(m.Vocab), hidden)
	if m.PerLayerHidden > 0 {
		packed := int64(m.Layers) * int64(m.PerLayerHidden)
		t.add(m.Prefix+"embed_tokens_per_layer.weight", byToken, int64(m.PerLayerVocab), packed)
		t.linear(m.Prefix+"per_layer_model_projection", packed, hidden, false, replicated)
		t.norm(m.Prefix+"per_layer_projection_norm", int64(m.PerLayerHidden), false)
	}
	m.layers(&t)
	m.end(&t, false)
	t.dropTowers("gemma4")
	return t
}

// layers adds the layers, and drops the keys and values of layers that attend to another's.
func (m *Gemma4) layers(t *Table) {
	hidden := int64(m.Hidden)
	for i, l := range m.Layer {
		layer := m.layer(i)
		t.norm(layer+"input_layernorm", hidden, false)
		m.attend(t, layer+"self_attn", i, l)
		t.norm(layer+"post_attention_layernorm", hidden, false)
		t.norm(layer+"pre_feedforward_layernorm", hidden, false)
		m.mlp(t, layer+"mlp", l.Intermediate)
		if m.Experts.Count > 0 {
			t.norm(layer+"post_feedforward_layernorm_1", hidden, false)
			t.norm(layer+"pre_feedforward_layernorm_2", hidden, false)
			t.add(layer+"router.scale", replicated, hidden)
			t.add(layer+"router.proj.weight", replicated, int64(m.Experts.Count), hidden)
			t.add(layer+"router.per_expert_scale", replicated, int64(m.Experts.Count))
			t.experts(layer+"experts", layer+"experts.switch_glu", m.Experts, m.Hidden)
			t.norm(layer+"post_feedforward_layernorm_2", hidden, false)
		}
		t.norm(layer+"post_feedforward_layernorm", hidden, false)
		if m.PerLayerHidden > 0 {
			t.linear(layer+"per_layer_input_gate", int64(m.PerLayerHidden), hidden, false, replicated)
			t.linear(layer+"per_layer_projection", hidden, int64(m.PerLayerHidden), false, replicated)
			t.norm(layer+"post_per_layer_input_norm", hidden, false)
		}
		t.add(layer+"layer_scalar", replicated, 1)
	}
}

func (m *Gemma4) attend(t *Table, name string, i int, l Gemma4Layer) {
	hidden, dim := int64(m.Hidden), int64(l.HeadDim)
	q, kv := int64(m.Heads)*dim, int64(l.KVHeads)*dim
	t.linear(name+".q_proj", q, hidden, m.AttentionBias, queryRows(m.Heads, l.KVHeads))
	t.norm(name+".q_norm", dim, false)
	switch {
	case l.KV == i:
		t.linear(name+".k_proj", kv, hidden, m.AttentionBias, keyRows(m.Heads, l.KVHeads))
		t.norm(name+".k_norm", dim, false)
		if !m.KEqV || l.Sliding {
			t.linear(name+".v_proj", kv, hidden, m.AttentionBias, keyRows(m.Heads, l.KVHeads))
		}
	case l.KV >= 0:
		reason := fmt.Sprintf("not used: layer %d attends the keys and values of layer %d", i, l.KV)
		t.drop(reason, name+".k_proj.*", name+".v_proj.*", name+".k_norm.*")
	}
	t.linear(name+".o_proj", hidden, q, m.OutputBias, queryColumns(m.Heads, l.KVHeads))
}
