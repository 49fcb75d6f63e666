package config

import (
	"fmt"
	"maps"
	"math"

	"github.com/ingotml/ingot/arch/table"
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

// LatentDefaults are the values of absent keys.
type LatentDefaults struct{ Query, Kv, Nope, Rope, Value int }

// ParseLatent reads the keys of decoders with latent attention, without those of experts.
func ParseLatent(top, o Object, d Defaults, l LatentDefaults, r RopeOptions) LatentDecoder {
	// transformers treats head_dim as another name of qk_rope_head_dim. Files with both keys mean something else by
	// head_dim, which has no influence.
	o.Integer("head_dim", 0, 1, MaxHeadDim)
	o.Keys = maps.Clone(o.Keys)
	delete(o.Keys, "head_dim")
	d.HeadDim = o.Integer("qk_rope_head_dim", l.Rope, 1, MaxHeadDim)
	m := LatentDecoder{
		Dense: Dense{
			Common:       ParseCommon(top, o, d),
			Intermediate: o.Size("intermediate_size", 0, MaxWidth),
			Activation:   o.Activation("hidden_act", SiLU...),
		},
		Latent: Latent{
			QueryRank:   o.Integer("q_lora_rank", 0, 1, MaxWidth),
			KVRank:      o.Integer("kv_lora_rank", l.Kv, 1, MaxWidth),
			NopeDim:     o.Integer("qk_nope_head_dim", l.Nope, 1, MaxHeadDim),
			RopeDim:     d.HeadDim,
			ValueDim:    o.Integer("v_head_dim", l.Value, 1, MaxHeadDim),
			Eps:         1e-6,
			Interleaved: true,
		},
	}
	if _, given := o.Keys["q_lora_rank"]; !given {
		m.Latent.QueryRank = l.Query // null means none
	}
	if m.KVHeads != m.Heads {
		o.Fail("num_key_value_heads", fmt.Sprintf("be num_attention_heads = %d: the latent is for all heads", m.Heads))
	}
	r.HeadDim = m.Latent.RopeDim
	m.Rope = ParseRope(o, m.Context, r)
	m.wholeRope(o)
	return m
}

// wholeRope requires that the rope rotates all channels that a head has for it. transformers accepts their share of a
// head as another way to say so.
func (m *LatentDecoder) wholeRope(o Object) {
	share := float64(m.Latent.RopeDim) / float64(m.Latent.NopeDim+m.Latent.RopeDim)
	if p := m.Rope.PartialFactor; p != 1 && p != share && o.Failed() == nil {
		*o.Err = Errorf("partial_rotary_factor = %v: must be 1", p)
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

// LatentAttention returns what models with latent attention share.
func (m *LatentDecoder) LatentAttention() *LatentDecoder { return m }

// State implements arch.Model. The cache holds latents; their first channels serve as values.
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

// TableAs makes the tensor table.
func (m *LatentDecoder) TableAs(modelType string) table.Table {
	t := m.TableOf(modelType, false, func(t *table.Table, layer string, i int) {
		m.block(t, layer, m.Mixture.Sparse != nil && m.Mixture.Sparse[i])
		if m.Index.Heads > 0 && m.Index.Full[i] {
			m.indexer(t, layer+"self_attn.indexer")
		}
	})
	m.next(&t)
	return t
}

// block adds a layer.
func (m *LatentDecoder) block(t *table.Table, layer string, sparse bool) {
	hidden := int64(m.Hidden)
	t.Norm(layer+"input_layernorm", hidden, false)
	m.AddLatentAttention(t, layer+"self_attn")
	t.Norm(layer+"post_attention_layernorm", hidden, false)
	if sparse {
		m.Mixture.AddTo(t, layer+"mlp", m.Hidden)
	} else {
		m.AddMLP(t, layer+"mlp", m.Intermediate)
	}
}

// AddLatentAttention adds the projections of latent attention.
func (m *LatentDecoder) AddLatentAttention(t *table.Table, name string) {
	hidden, heads := int64(m.Hidden), int64(m.Heads)
	l := m.Latent
	nope, rope, value, rank := int64(l.NopeDim), int64(l.RopeDim), int64(l.ValueDim), int64(l.KVRank)
	if l.QueryRank > 0 {
		t.Linear(name+".q_a_proj", int64(l.QueryRank), hidden, m.AttentionBias, table.Whole)
		t.Norm(name+".q_a_layernorm", int64(l.QueryRank), false)
		t.Linear(name+".q_b_proj", heads*(nope+rope), int64(l.QueryRank), false, table.HeadRows(m.Heads))
	} else {
		t.Linear(name+".q_proj", heads*(nope+rope), hidden, false, table.HeadRows(m.Heads))
	}
	t.Linear(name+".kv_a_proj_with_mqa", rank+rope, hidden, m.AttentionBias, table.Whole)
	t.Norm(name+".kv_a_layernorm", rank, false)
	t.Linear(name+".kv_b_proj", heads*(nope+value), rank, false, table.HeadRows(m.Heads))
	t.Linear(name+".o_proj", hidden, heads*value, m.OutputBias, table.HeadColumns(m.Heads))
}

// indexer adds the projections of an indexer.
func (m *LatentDecoder) indexer(t *table.Table, name string) {
	hidden, dim, heads := int64(m.Hidden), int64(m.Index.Dim), int64(m.Index.Heads)
	t.Linear(name+".wq_b", heads*dim, int64(m.Latent.QueryRank), false, table.Whole)
	t.Linear(name+".wk", dim, hidden, false, table.Whole)
	t.LayerNorm(name+".k_norm", dim)
	t.Linear(name+".weights_proj", heads, hidden, false, table.Whole)
}

// HasNext reports whether the tensors of a multi-token prediction head are imported. Several heads would be used in
// turn, each with the keys of its own rows; no published checkpoint has more than one. Those of models with
// indexers are not imported.
func (m *LatentDecoder) HasNext() bool { return m.NextLayers == 1 && m.Index.Heads == 0 }

// Next returns the name prefix of the multi-token prediction head, which is numbered like a layer after the last.
func (m *LatentDecoder) Next() string { return m.NextName() }

// next adds the multi-token prediction head, whose layer has experts if any layer has.
func (m *LatentDecoder) next(t *table.Table) {
	if !m.HasNext() {
		m.DropNext(t, m.NextLayers)
		return
	}
	m.AddNext(t, func(t *table.Table, layer string) { m.block(t, layer, m.Mixture.Sparse != nil) })
}

// CheckLayerFrequency refuses a key of DeepSeek's configurations that transformers ignores.
func (o Object) CheckLayerFrequency() {
	if o.Integer("moe_layer_freq", 1, 0, MaxLayers) != 1 {
		o.Fail("moe_layer_freq", "be 1: all layers after the dense ones have experts")
	}
}

// ReadIndex reads the keys of indexers.
func (m *LatentDecoder) ReadIndex(o Object, heads int) {
	m.Index = Index{
		Heads:  o.Integer("index_n_heads", heads, 1, MaxHeads),
		Dim:    o.Integer("index_head_dim", 128, 1, MaxHeadDim),
		Budget: o.Integer("index_topk", 2048, 1, MaxContext),
		Full:   make([]bool, m.Layers),
	}
	for i := range m.Index.Full {
		m.Index.Full[i] = true
	}
	o.Words("layer_types", m.Layers, sparseLayers...)
	switch {
	case m.Index.Dim < m.Latent.RopeDim || m.Index.Dim%4 != 0:
		o.Fail("index_head_dim", fmt.Sprintf("be a multiple of 4 and at least qk_rope_head_dim = %d", m.Latent.RopeDim))
	case m.Latent.QueryRank == 0:
		o.Fail("q_lora_rank", "be a number: indexers read the latent of queries")
	}
}

// sparseLayers are the names of layers with an indexer: transformers 5.23's, and those of published configurations.
var sparseLayers = []string{"indexed_attention", "deepseek_sparse_attention"}

// Link implements arch.Linked: layers without an indexer attend to what the last one has chosen.
func (m *LatentDecoder) Link(i int) int {
	for m.Index.Heads > 0 && i > 0 && !m.Index.Full[i] {
		i--
	}
	return i
}

func (m *LatentDecoder) Borrowed(int) string { return "" }
