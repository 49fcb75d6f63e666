package arch

import "strconv"

// State implements [Model].
func (m *Qwen35) State() []LayerState { return m.hybridStates(m.Full, m.Delta.state()) }

// Facts implements [Model].
func (m *Qwen35) Facts() Facts { return m.facts("qwen3_5", m.Rope, m.Table()) }

// Rules implements [Model].
func (m *Qwen35) Rules() Rules {
	return deltaRules(m.Layers, ".linear_attn.in_proj_a.weight", ".linear_attn.in_proj_b.weight",
		".linear_attn.in_proj_ba.weight")
}

// deltaRules are the rules of models with gated delta nets. The projections of decay and step size, whose names have
// the given ends, keep their type: they have only one row per head and control how long the state remembers.
func deltaRules(layers int, ends ...string) Rules {
	return genericRules(layers, Rule{
		Name: "decay and step of a gated delta net", Of: Quantized, To: []Target{Source}, Ends: ends,
	})
}

// Table implements [Model].
func (m *Qwen35) Table() Table {
	return m.table("qwen3_5", func(t *Table, layer string, _ int) {
		m.mlp(t, layer+"mlp", m.Intermediate)
	})
}

const mtpPrefix = "mtp."

// table makes the tensor table. mlp adds a layer's feed-forward block; it gets the layer's number, or -1 in the MTP
// head.
func (m *Qwen35) table(modelType string, mlp func(t *Table, layer string, i int)) Table {
	hidden := int64(m.Hidden)
	t := Table{ModelType: modelType, Parts: []Part{
		{
			Name: "mtp", Prefix: mtpPrefix, Optional: true,
			Accept: []string{"language_model.mtp.", "model.mtp.", "model.language_model.mtp."},
		},
	}}
	if m.Vision != nil {
		t.Parts = append(t.Parts, visionPart())
	}
	t.Parts = append(t.Parts, m.textPart())
	t.add(m.Prefix+"embed_tokens.weight", byToken, int64(m.Vocab), hidden)
	for i := range m.Layers {
		layer := m.layer(i)
		t.norm(layer+"input_layernorm", hidden, true)
		if m.Full[i] {
			m.gatedAttention(&t, layer+"self_attn")
		} else {
			t.gatedDelta(layer+"linear_attn", m.Delta, hidden)
		}
		t.norm(layer+"post_attention_layernorm", hidden, true)
		mlp(&t, layer, i)
	}
	m.end(&t, true)
	if m.Vision != nil {
		m.Vision.table(&t)
	} else {
		t.leaveOut("visual", "the configuration has no vision_config", "model.visual.*", "visual.*", "vision_tower.*")
	}
	m.mtp(&t, mlp)
	return t
}

// mtp adds the multi-token prediction head, which predicts the token after the next. It combines the next token's
// embedding with the hidden state, and has full attention layers with their own keys. It uses the model's embedding and
// output projection.
func (m *Qwen35) mtp(t *Table, mlp func(*Table, string, int)) {
	hidden := int64(m.Hidden)
	if m.MTP == 0 {
		return
	}
	t.norm(mtpPrefix+"pre_fc_norm_embedding", hidden, true)
	t.norm(mtpPrefix+"pre_fc_norm_hidden", hidden, true)
	t.linear(mtpPrefix+"fc", hidden, 2*hidden, false, replicated)
	for i := range m.MTP {
		layer := mtpPrefix + "layers." + strconv.Itoa(i) + "."
		t.norm(layer+"input_layernorm", hidden, true)
		m.gatedAttention(t, layer+"self_attn")
		t.norm(layer+"post_attention_layernorm", hidden, true)
		mlp(t, layer, -1)
	}
	t.norm(mtpPrefix+"norm", hidden, true)
}

// gatedAttention adds attention whose q_proj produces, for each head, its query and then the gate of its output.
func (m *Qwen35) gatedAttention(t *Table, name string) {
	m.attention(t, name, 2*m.queries(), true)
}

// gatedDelta adds a gated delta net. Its input projections are published as four tensors, or as two fused ones in
// Qwen3-Next. The rows of a fused tensor are ordered by key head: the head's queries, keys, values and gates in one
// tensor, its beta and alpha in the other.
func (t *Table) gatedDelta(name string, d GatedDelta, hidden int64) {
	heads, key := int64(d.KeyHeads), int64(d.KeyDim)
	perHead := int64(d.ValueHeads / d.KeyHeads) // value heads per key head
	value := perHead * int64(d.ValueDim)
	block := 2*key + 2*value
	qkvz, ba := []int64{heads * block, hidden}, []int64{2 * int64(d.ValueHeads), hidden}
	rows := func(begin, count, step int64) Run {
		return Run{Begin: begin * hidden, Count: count * hidden, Step: step * hidden, Times: heads}
	}
	project := func(suffix string, by Split, out int64, from string, shape []int64, runs ...Run) {
		s := t.add(name+suffix, by, out, hidden)
		s.Layout, s.Group = split, name+from // GGUF files fuse one of the two
		s.Forms = []Form{{
			Layout: fused, Make: Gather, Count: 1, Names: []string{name + from}, Shapes: [][]int64{shape}, Runs: runs,
		}}
	}
	channels := 2*int64(d.Keys()) + int64(d.Values())
	byHead := headRows(d.KeyHeads)
	qkv := byHead
	qkv.Sections = []int64{int64(d.Keys()), int64(d.Keys()), int64(d.Values())}
	project(".in_proj_qkv.weight", qkv, channels, ".in_proj_qkvz.weight", qkvz,
		rows(0, key, block), rows(key, key, block), rows(2*key, value, block))
	project(".in_proj_z.weight", byHead, int64(d.Values()), ".in_proj_qkvz.weight", qkvz, rows(2*key+value, value, block))
	project(".in_proj_b.weight", byHead, int64(d.ValueHeads), ".in_proj_ba.weight", ba, rows(0, perHead, 2*perHead))
	project(".in_proj_a.weight", byHead, int64(d.ValueHeads), ".in_proj_ba.weight", ba, rows(perHead, perHead, 2*perHead))
	conv := t.add(name+".conv1d.weight", qkv, channels, 1, int64(d.Kernel))
	conv.Reshape = [][]int64{{channels, int64(d.Kernel), 1}, {channels, int64(d.Kernel)}}
	t.add(name+".dt_bias", byHead, int64(d.ValueHeads))
	t.add(name+".A_log", byHead, int64(d.ValueHeads))
	t.norm(name+".norm", int64(d.ValueDim), false)
	t.linear(name+".out_proj", hidden, int64(d.Values()), false, headColumns(d.KeyHeads))
}
