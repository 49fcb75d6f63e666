package arch

import (
	"fmt"
	"maps"
	"math"
)

// Latent is multi-head latent attention (MLA): queries, and keys and values, pass through low-rank projections. The
// KV cache holds a latent and one rotated key per token, shared by all heads.
type Latent struct {
	QueryRank int // 0: a single query projection
	KVRank    int // size of the latent
	NopeDim   int // unrotated channels of a query or key head
	RopeDim   int // rotated channels of a query or key head
	ValueDim  int // channels of a value head
	// Eps is the epsilon of the latents' norms. All other norms use NormEps.
	Eps         float64
	Interleaved bool // a rotated pair is two adjacent channels, not two that are half a head apart
	// GrowthBeta multiplies queries by 1 + beta*ln(1 + floor(position/GrowthContext)); 0 = no growth.
	GrowthBeta    float64
	GrowthContext int
	// QueryScale and KVScale multiply the queries and the normalized latents; 0 = 1.
	QueryScale, KVScale float64
}

// LatentDecoder is the configuration that decoders with latent attention share. Each model type embeds it and adds what
// it has beyond. HeadDim equals Latent.RopeDim, and Rope is of those channels.
type LatentDecoder struct {
	Dense
	Latent  Latent
	Mixture Mixture // Sparse is nil if no layer has experts
	Index   Index   // Heads is 0 if attention is dense
	// NextLayers is the number of multi-token prediction heads, numbered after the layers.
	NextLayers int
}

// Index describes the indexers of sparse attention, which choose the positions that a row attends to.
type Index struct {
	Heads, Dim  int
	Budget      int    // positions that a row attends to
	Interleaved bool   // as in Latent; of the first RopeDim channels of queries and keys
	Full        []bool // by layer: it has an indexer; others attend to what the last indexer has chosen
}

// latentDefaults are the values of absent keys.
type latentDefaults struct{ query, kv, nope, rope, value int }

// parseLatent reads the keys of decoders with latent attention, without those of experts.
func parseLatent(top, o object, d commonDefaults, l latentDefaults, r ropeOptions) LatentDecoder {
	// transformers treats head_dim as another name of qk_rope_head_dim. Files with both keys mean something else by
	// head_dim, which has no influence.
	o.integer("head_dim", 0, 1, maxHeadDim)
	o.raw = maps.Clone(o.raw)
	delete(o.raw, "head_dim")
	d.dim = o.integer("qk_rope_head_dim", l.rope, 1, maxHeadDim)
	m := LatentDecoder{
		Dense: Dense{
			Common:       parseCommon(top, o, d),
			Intermediate: o.size("intermediate_size", 0, maxWidth),
			Activation:   o.activation("hidden_act", silu...),
		},
		Latent: Latent{
			QueryRank:   o.integer("q_lora_rank", 0, 1, maxWidth),
			KVRank:      o.integer("kv_lora_rank", l.kv, 1, maxWidth),
			NopeDim:     o.integer("qk_nope_head_dim", l.nope, 1, maxHeadDim),
			RopeDim:     d.dim,
			ValueDim:    o.integer("v_head_dim", l.value, 1, maxHeadDim),
			Eps:         1e-6,
			Interleaved: true,
		},
	}
	if _, given := o.raw["q_lora_rank"]; !given {
		m.Latent.QueryRank = l.query // null means none
	}
	if m.KVHeads != m.Heads {
		o.fail("num_key_value_heads", fmt.Sprintf("be num_attention_heads = %d: the latent is for all heads", m.Heads))
	}
	r.headDim = m.Latent.RopeDim
	m.Rope = parseRope(o, m.Context, r)
	m.wholeRope(o)
	return m
}

// wholeRope requires that the rope rotates all channels that a head has for it. transformers accepts their share of a
// head as another way to say so.
func (m *LatentDecoder) wholeRope(o object) {
	share := float64(m.Latent.RopeDim) / float64(m.Latent.NopeDim+m.Latent.RopeDim)
	if p := m.Rope.PartialFactor; p != 1 && p != share && o.failed() == nil {
		*o.err = configErrorf("partial_rotary_factor = %v: must be 1", p)
	}
	m.Rope.PartialFactor = 1
}

// AttentionScale returns the factor of the attention scores: the inverse square root of a head's size, corrected for
// yarn's mscale_all_dim, times the scale of the queries.
func (m *LatentDecoder) AttentionScale() float64 {
	scale := 1 / math.Sqrt(float64(m.Latent.NopeDim+m.Latent.RopeDim))
	if m.Rope.Type == RopeYarn && m.Rope.MScaleAllDim != 0 && m.Rope.Factor > 1 {
		mscale := 0.1*m.Rope.MScaleAllDim*math.Log(m.Rope.Factor) + 1
		scale *= mscale * mscale
	}
	return scale * orDefault(m.Latent.QueryScale, 1)
}

// State implements [Model]. The cache holds latents; their first channels serve as values.
func (m *LatentDecoder) State() []LayerState {
	list := make([]LayerState, m.Layers)
	for i := range list {
		list[i].PerToken = int64(m.Latent.KVRank + m.Latent.RopeDim)
		if m.Index.Heads > 0 && m.Index.Full[i] {
			list[i].PerToken += int64(m.Index.Dim)
		}
	}
	return list
}

// table makes the tensor table.
func (m *LatentDecoder) table(modelType string) Table {
	t := m.decoder(modelType, false, func(t *Table, layer string, i int) {
		m.block(t, layer, m.Mixture.Sparse != nil && m.Mixture.Sparse[i])
		if m.Index.Heads > 0 && m.Index.Full[i] {
			m.indexer(t, layer+"self_attn.indexer")
		}
	})
	m.next(&t)
	return t
}

// block adds a layer.
func (m *LatentDecoder) block(t *Table, layer string, sparse bool) {
	hidden := int64(m.Hidden)
	t.norm(layer+"input_layernorm", hidden, false)
	m.latentAttention(t, layer+"self_attn")
	t.norm(layer+"post_attention_layernorm", hidden, false)
	if sparse {
		t.mixture(layer+"mlp", m.Mixture, m.Hidden)
	} else {
		m.mlp(t, layer+"mlp", m.Intermediate)
	}
}

// latentAttention adds the projections of latent attention.
func (m *LatentDecoder) latentAttention(t *Table, name string) {
	hidden, heads := int64(m.Hidden), int64(m.Heads)
	l := m.Latent
	nope, rope, value, rank := int64(l.NopeDim), int64(l.RopeDim), int64(l.ValueDim), int64(l.KVRank)
	if l.QueryRank > 0 {
		t.linear(name+".q_a_proj", int64(l.QueryRank), hidden, m.AttentionBias, replicated)
		t.norm(name+".q_a_layernorm", int64(l.QueryRank), false)
		t.linear(name+".q_b_proj", heads*(nope+rope), int64(l.QueryRank), false, headRows(m.Heads))
	} else {
		t.linear(name+".q_proj", heads*(nope+rope), hidden, false, headRows(m.Heads))
	}
	t.linear(name+".kv_a_proj_with_mqa", rank+rope, hidden, m.AttentionBias, replicated)
	t.norm(name+".kv_a_layernorm", rank, false)
	t.linear(name+".kv_b_proj", heads*(nope+value), rank, false, headRows(m.Heads))
	t.linear(name+".o_proj", hidden, heads*value, m.OutputBias, headColumns(m.Heads))
}

// indexer adds the projections of an indexer.
func (m *LatentDecoder) indexer(t *Table, name string) {
	hidden, dim, heads := int64(m.Hidden), int64(m.Index.Dim), int64(m.Index.Heads)
	t.linear(name+".wq_b", heads*dim, int64(m.Latent.QueryRank), false, replicated)
	t.linear(name+".wk", dim, hidden, false, replicated)
	t.layerNorm(name+".k_norm", dim)
	t.linear(name+".weights_proj", heads, hidden, false, replicated)
}

// HasNext reports whether the tensors of a multi-token prediction head are imported. Several heads would be used in
// turn, each with the keys of its own rows; no published checkpoint has more than one. Those of models with
// indexers are not imported.
func (m *LatentDecoder) HasNext() bool { return m.NextLayers == 1 && m.Index.Heads == 0 }

// Next returns the name prefix of the multi-token prediction head, which is numbered like a layer after the last.
func (m *LatentDecoder) Next() string { return m.nextLayer() }

// next adds the multi-token prediction head, whose layer has experts if any layer has.
func (m *LatentDecoder) next(t *Table) {
	if !m.HasNext() {
		m.dropNext(t, m.NextLayers)
		return
	}
	m.addNext(t, func(t *Table, layer string) { m.block(t, layer, m.Mixture.Sparse != nil) })
}
