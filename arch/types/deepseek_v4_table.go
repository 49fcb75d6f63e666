package types

import (
	"github.com/ingotml/ingot/arch/table"
)

// Table implements [arch.Model]. The names are those of the model's class in transformers, which saves it under others,
// as does its publisher.
func (m *DeepseekV4) Table() table.Table {
	hidden := int64(m.Hidden)
	t := m.TableOf("deepseek_v4", false, func(t *table.Table, layer string, i int) {
		m.hyper(t, layer+"attn_hc.")
		t.Norm(layer+"input_layernorm", hidden, false)
		m.attend(t, layer+"self_attn", m.Compression[i])
		m.hyper(t, layer+"ffn_hc.")
		t.Norm(layer+"post_attention_layernorm", hidden, false)
		x := m.Mixture
		if m.Hash[i] {
			x.Router.Correction = false
			t.Add(layer+"mlp.gate.tid2eid", table.Whole, int64(m.Vocab), int64(x.Experts.PerToken)).Types = []string{"I64",
				"I32"}
		}
		x.AddTo(t, layer+"mlp", m.Hidden)
	})
	n := int64(m.Streams.Count)
	t.Add(m.Prefix+"hc_head.hc_fn", table.Whole, n, n*hidden)
	t.Add(m.Prefix+"hc_head.hc_base", table.Whole, n)
	t.Add(m.Prefix+"hc_head.hc_scale", table.Whole, 1)
	t.Also(deepseekV4Names, append([]string{".self_attn.kv_norm.", ".attn.norm."}, deepseekV4Names...))
	t.LeaveOut("mtp", "a head for tokens after the next, which is not supported for deepseek_v4",
		m.Prefix+"mtp.*", "mtp.*")
	return t
}

// deepseekV4Names are pairs of the names here and the publisher's, which transformers 5.23 also saves, except for one
// norm.
var deepseekV4Names = []string{
	".self_attn.compressor.indexer.kv_proj.", ".attn.indexer.compressor.wkv.",
	".self_attn.compressor.indexer.gate_proj.", ".attn.indexer.compressor.wgate.",
	".self_attn.compressor.indexer.position_bias", ".attn.indexer.compressor.ape",
	".self_attn.compressor.indexer.kv_norm.", ".attn.indexer.compressor.norm.",
	".self_attn.compressor.indexer.q_b_proj.", ".attn.indexer.wq_b.",
	".self_attn.compressor.indexer.scorer.", ".attn.indexer.",
	".self_attn.compressor.kv_proj.", ".attn.compressor.wkv.",
	".self_attn.compressor.gate_proj.", ".attn.compressor.wgate.",
	".self_attn.compressor.position_bias", ".attn.compressor.ape",
	".self_attn.compressor.kv_norm.", ".attn.compressor.norm.",
	".self_attn.q_a_proj.", ".attn.wq_a.", ".self_attn.q_a_norm.", ".attn.q_norm.", ".self_attn.q_b_proj.", ".attn.wq_b.",
	".self_attn.kv_proj.", ".attn.wkv.", ".self_attn.kv_norm.", ".attn.kv_norm.",
	".self_attn.o_a_proj.", ".attn.wo_a.", ".self_attn.o_b_proj.", ".attn.wo_b.", ".self_attn.sinks", ".attn.attn_sink",
	".input_layernorm.", ".attn_norm.", ".post_attention_layernorm.", ".ffn_norm.",
	".attn_hc.", ".hc_attn_", ".ffn_hc.", ".hc_ffn_", ".hc_head.hc_", ".hc_head_",
	".mlp.gate.e_score_correction_bias", ".ffn.gate.bias", ".mlp.gate.", ".ffn.gate.",
	".mlp.shared_experts.gate_proj.", ".ffn.shared_experts.w1.", ".mlp.shared_experts.down_proj.",
	".ffn.shared_experts.w2.", ".mlp.shared_experts.up_proj.", ".ffn.shared_experts.w3.",
	".mlp.experts.*.gate_proj.", ".ffn.experts.*.w1.", ".mlp.experts.*.down_proj.", ".ffn.experts.*.w2.",
	".mlp.experts.*.up_proj.", ".ffn.experts.*.w3.", ".mlp.", ".ffn.",
	".embed_tokens.", ".embed.", "lm_head.", "head.",
}

// hyper adds the weights of a hyper-connection: of the streams that the block reads, of those that it writes, and of
// the mixture.
func (m *DeepseekV4) hyper(t *table.Table, name string) {
	n := int64(m.Streams.Count)
	t.Add(name+"fn", table.Whole, n*(n+2), n*int64(m.Hidden))
	t.Add(name+"base", table.Whole, n*(n+2))
	t.Add(name+"scale", table.Whole, 3)
}

// attend adds the projections of attention.
func (m *DeepseekV4) attend(t *table.Table, name string, c Compression) {
	hidden, heads, dim, rank := int64(m.Hidden), int64(m.Heads), int64(m.HeadDim), int64(m.QueryRank)
	t.Linear(name+".q_a_proj", rank, hidden, false, table.Whole)
	t.Norm(name+".q_a_norm", rank, false)
	t.Linear(name+".q_b_proj", heads*dim, rank, false, table.HeadRows(m.OutGroups))
	t.Linear(name+".kv_proj", dim, hidden, false, table.Whole)
	t.Norm(name+".kv_norm", dim, false)
	t.Add(name+".sinks", table.HeadRows(m.OutGroups), heads)
	wide := int64(m.OutGroups) * int64(m.OutRank)
	t.Linear(name+".o_a_proj", wide, heads*dim/int64(m.OutGroups), false, table.HeadRows(m.OutGroups))
	t.Linear(name+".o_b_proj", hidden, wide, false, table.HeadColumns(m.OutGroups))
	if c.Rate == 0 {
		return
	}
	m.compressor(t, name+".compressor", dim, c)
	if c.Overlap {
		index, n := name+".compressor.indexer", int64(m.Index.Heads)
		m.compressor(t, index, int64(m.Index.Dim), c)
		t.Linear(index+".q_b_proj", n*int64(m.Index.Dim), rank, false, table.Whole)
		t.Linear(index+".scorer.weights_proj", n, hidden, false, table.Whole)
	}
}

// compressor adds the projections of a compressor to entries of dim channels.
func (m *DeepseekV4) compressor(t *table.Table, name string, dim int64, c Compression) {
	wide := dim
	if c.Overlap {
		wide *= 2
	}
	t.Linear(name+".kv_proj", wide, int64(m.Hidden), false, table.Whole)
	t.Linear(name+".gate_proj", wide, int64(m.Hidden), false, table.Whole)
	t.Add(name+".position_bias", table.Whole, int64(c.Rate), wide)
	t.Norm(name+".kv_norm", dim, false)
}
