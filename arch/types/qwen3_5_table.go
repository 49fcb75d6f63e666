package types

import (
	"strconv"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

func (m *Qwen35) State() []config.LayerState { return m.HybridStates(m.Full, m.Delta.LayerState()) }

func (m *Qwen35) Facts() config.Facts { return m.FactsAs("qwen3_5", m.Rope, m.Table()) }

func (m *Qwen35) Rules() precision.Rules {
	return config.DeltaRules(m.Layers, ".linear_attn.in_proj_a.weight", ".linear_attn.in_proj_b.weight",
		".linear_attn.in_proj_ba.weight")
}

func (m *Qwen35) Table() table.Table {
	return m.table("qwen3_5", func(t *table.Table, layer string, _ int) {
		m.AddMLP(t, layer+"mlp", m.Intermediate)
	})
}

const mtpPrefix = "mtp."

// table makes the tensor table. mlp adds a layer's feed-forward block; it gets the layer's number, or -1 in the MTP
// head.
func (m *Qwen35) table(modelType string, mlp func(t *table.Table, layer string, i int)) table.Table {
	hidden := int64(m.Hidden)
	t := table.Table{ModelType: modelType, Parts: []table.Part{
		{
			Name: "mtp", Prefix: mtpPrefix, Optional: true,
			Accept: []string{"language_model.mtp.", "model.mtp.", "model.language_model.mtp."},
		},
	}}
	if m.Vision != nil {
		t.Parts = append(t.Parts, visionPart())
	}
	t.Parts = append(t.Parts, m.TextPart())
	t.Add(m.Prefix+"embed_tokens.weight", table.EachToken, int64(m.Vocab), hidden)
	for i := range m.Layers {
		layer := m.LayerName(i)
		t.Norm(layer+"input_layernorm", hidden, true)
		if m.Full[i] {
			m.gatedAttention(&t, layer+"self_attn")
		} else {
			m.Delta.AddTo(&t, layer+"linear_attn", hidden)
		}
		t.Norm(layer+"post_attention_layernorm", hidden, true)
		mlp(&t, layer, i)
	}
	m.AddEnd(&t, true)
	if m.Vision != nil {
		m.Vision.table(&t)
	} else {
		t.LeaveOut("visual", "the configuration has no vision_config", "model.visual.*", "visual.*", "vision_tower.*")
	}
	m.mtp(&t, mlp)
	return t
}

// mtp adds the multi-token prediction head, which predicts the token after the next. It combines the next token's
// embedding with the hidden state, and has full attention layers with their own keys. It uses the model's embedding and
// output projection.
func (m *Qwen35) mtp(t *table.Table, mlp func(*table.Table, string, int)) {
	hidden := int64(m.Hidden)
	if m.MTP == 0 {
		return
	}
	t.Norm(mtpPrefix+"pre_fc_norm_embedding", hidden, true)
	t.Norm(mtpPrefix+"pre_fc_norm_hidden", hidden, true)
	t.Linear(mtpPrefix+"fc", hidden, 2*hidden, false, table.Whole)
	for i := range m.MTP {
		layer := mtpPrefix + "layers." + strconv.Itoa(i) + "."
		t.Norm(layer+"input_layernorm", hidden, true)
		m.gatedAttention(t, layer+"self_attn")
		t.Norm(layer+"post_attention_layernorm", hidden, true)
		mlp(t, layer, -1)
	}
	t.Norm(mtpPrefix+"norm", hidden, true)
}

// gatedAttention adds attention whose q_proj produces, for each head, its query and then the gate of its output.
func (m *Qwen35) gatedAttention(t *table.Table, name string) {
	m.AddAttention(t, name, 2*m.QueryWidth(), true)
}
