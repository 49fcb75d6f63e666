package arch

import (
	"fmt"
	"maps"
	"math"
)

// Glm4MoeLite is the configuration of model type "glm4_moe_lite": multi-head latent attention (MLA) and experts with a
// sigmoid router. Queries, and keys and values, pass through low-rank projections; the KV cache holds a latent and one
// rotated key per token, shared by all heads. Absent keys have the defaults of transformers 5.23; sizes are required.
type Glm4MoeLite struct {
	Common           // HeadDim equals RopeDim
	Intermediate int // of dense layers
	Activation   string
	Rope         Rope // of the RopeDim rotated channels of a head
	Interleaved  bool // a pair is two adjacent channels, not two that are half a head apart

	QueryRank int // 0: a single query projection
	KVRank    int // size of the latent
	NopeDim   int // unrotated channels of a query or key head
	RopeDim   int // rotated channels of a query or key head
	ValueDim  int // channels of a value head
	// LatentEps is the epsilon of the latents' norms. All others use NormEps.
	LatentEps float64

	// The router's scores are sigmoids. The scores plus a correction bias select TopGroups of the Groups (by the sum of
	// each group's two best experts), then experts inside them. The scores without the bias, normalized to sum to 1 with
	// NormTopK and multiplied by Scaling, are the experts' weights.
	Experts           Experts
	Groups, TopGroups int
	Scaling           float64
	SharedExperts     int    // number of experts that process every token; stored as one MLP, that many times as wide
	Sparse            []bool // by layer: it has experts
	// NextLayers is the number of multi-token prediction heads, numbered after the layers. They are not imported.
	NextLayers int
}

func init() {
	register(Arch{
		ModelType:     "glm4_moe_lite",
		Architectures: []string{"Glm4MoeLiteForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseGlm4MoeLite(config) },
		GGUF:          []GGUF{ggufGlm4MoeLite},
		Chat:          &Chat{Marks: []string{"glm4", "glm-4"}, Parser: "glm-4.7", Renderer: "glm-4.7", Thinks: true},
		Docs: Docs{
			Variants: "low-rank or single query projection, groups of experts, shared experts, dense first layers",
			Rules:    "generic, also for experts",
		},
	})
}

// ParseGlm4MoeLite parses the config.json of a glm4_moe_lite model.
func ParseGlm4MoeLite(config []byte) (*Glm4MoeLite, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	// transformers treats head_dim as another name of qk_rope_head_dim. Files with both keys mean something else by
	// head_dim.
	o.raw = maps.Clone(o.raw)
	delete(o.raw, "head_dim")
	ropeDim := o.integer("qk_rope_head_dim", 64, 1, maxHeadDim)
	m := &Glm4MoeLite{
		Common: parseCommon(top, o, commonDefaults{
			class: "Glm4MoeLiteForCausalLM", dim: ropeDim, ctx: 202752, eps: 1e-5, bos: []int32{0}, eos: []int32{1},
		}),
		Intermediate:  o.size("intermediate_size", 0, maxWidth),
		Activation:    o.activation("hidden_act", silu...),
		Interleaved:   o.boolean("rope_interleave", true),
		QueryRank:     o.integer("q_lora_rank", 0, 1, maxWidth),
		KVRank:        o.integer("kv_lora_rank", 512, 1, maxWidth),
		NopeDim:       o.integer("qk_nope_head_dim", 192, 1, maxHeadDim),
		RopeDim:       ropeDim,
		ValueDim:      o.integer("v_head_dim", 256, 1, maxHeadDim),
		LatentEps:     1e-6,
		Groups:        o.integer("n_group", 1, 1, maxExperts),
		TopGroups:     o.integer("topk_group", 1, 1, maxExperts),
		Scaling:       o.above("routed_scaling_factor", 1.8, 0),
		SharedExperts: o.integer("n_shared_experts", 1, 0, 64),
		NextLayers:    o.integer("num_nextn_predict_layers", 1, 0, 16),
		Experts: Experts{
			Count:        o.integer("n_routed_experts", o.integer("num_local_experts", 64, 1, maxExperts), 1, maxExperts),
			PerToken:     o.integer("num_experts_per_tok", 4, 1, maxExperts),
			Intermediate: o.integer("moe_intermediate_size", 1536, 1, maxWidth/64),
			NormTopK:     o.boolean("norm_topk_prob", true),
		},
	}
	if _, given := o.raw["q_lora_rank"]; !given {
		m.QueryRank = 768 // null means none
	}
	m.checkRouter(o)
	m.Rope = parseRope(o, m.Context, ropeOptions{headDim: m.RopeDim})
	if m.Rope.PartialFactor != 1 && o.failed() == nil {
		*o.err = configErrorf("partial_rotary_factor = %v: must be 1", m.Rope.PartialFactor)
	}
	m.Sparse = make([]bool, m.Layers)
	kinds := o.kinds("mlp_layer_types", m.Layers, "dense", "sparse")
	dense := o.integer("first_k_dense_replace", 1, 0, maxLayers)
	for i := range m.Sparse {
		m.Sparse[i] = i >= dense
		if kinds != nil {
			m.Sparse[i] = kinds[i] == "sparse"
		}
	}
	if err := o.failed(); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Glm4MoeLite) checkRouter(o object) {
	if m.KVHeads != m.Heads {
		o.fail("num_key_value_heads", fmt.Sprintf("be num_attention_heads = %d: the latent is for all heads", m.Heads))
	}
	if method := o.str("topk_method", "noaux_tc"); method != "noaux_tc" {
		o.fail("topk_method", `be "noaux_tc"`)
	}
	if f := o.str("scoring_func", "sigmoid"); f != "sigmoid" {
		o.fail("scoring_func", `be "sigmoid"`)
	}
	o.checkExperts("n_routed_experts", m.Experts, m.Hidden)
	perGroup := m.Experts.Count / m.Groups
	switch {
	case m.Experts.Count%m.Groups != 0 || perGroup < 2:
		o.fail("n_group", fmt.Sprintf("divide the %d experts into groups of two or more", m.Experts.Count))
	case m.TopGroups > m.Groups:
		o.fail("topk_group", fmt.Sprintf("be <= n_group = %d", m.Groups))
	case m.Experts.PerToken > m.TopGroups*perGroup:
		o.fail("num_experts_per_tok", fmt.Sprintf("be <= %d, the experts of the chosen groups", m.TopGroups*perGroup))
	}
}

// AttentionScale returns the factor of the attention scores: the inverse square root of a head's size, corrected for
// yarn's mscale_all_dim.
func (m *Glm4MoeLite) AttentionScale() float64 {
	scale := 1 / math.Sqrt(float64(m.NopeDim+m.RopeDim))
	if m.Rope.Type == RopeYarn && m.Rope.MScaleAllDim != 0 && m.Rope.Factor > 1 {
		mscale := 0.1*m.Rope.MScaleAllDim*math.Log(m.Rope.Factor) + 1
		scale *= mscale * mscale
	}
	return scale
}

// State implements [Model]. The cache holds latents; their first channels serve as values.
func (m *Glm4MoeLite) State() []LayerState {
	list := make([]LayerState, m.Layers)
	for i := range list {
		list[i].PerToken = int64(m.KVRank + m.RopeDim)
	}
	return list
}

// Facts implements [Model].
func (m *Glm4MoeLite) Facts() Facts { return m.facts("glm4_moe_lite", m.Rope, m.Table()) }

// Rules implements [Model].
func (m *Glm4MoeLite) Rules() Rules { return genericRules(m.Layers) }

// Table implements [Model].
func (m *Glm4MoeLite) Table() Table {
	hidden := int64(m.Hidden)
	t := m.decoder("glm4_moe_lite", false, func(t *Table, layer string, i int) {
		t.norm(layer+"input_layernorm", hidden, false)
		m.latentAttention(t, layer+"self_attn", hidden, int64(m.Heads))
		t.norm(layer+"post_attention_layernorm", hidden, false)
		if !m.Sparse[i] {
			m.mlp(t, layer+"mlp", m.Intermediate)
			return
		}
		t.add(layer+"mlp.gate.weight", replicated, int64(m.Experts.Count), hidden)
		t.add(layer+"mlp.gate.e_score_correction_bias", replicated, int64(m.Experts.Count))
		t.experts(layer+"mlp.experts", layer+"mlp.switch_mlp", m.Experts, m.Hidden)
		if m.SharedExperts > 0 {
			m.mlp(t, layer+"mlp.shared_experts", m.SharedExperts*m.Experts.Intermediate)
		}
	})
	for i := range m.NextLayers {
		t.drop("a head for tokens after the next (num_nextn_predict_layers), which is not supported for glm4_moe_lite",
			m.layer(m.Layers+i)+"*")
	}
	return t
}

func (m *Glm4MoeLite) latentAttention(t *Table, name string, hidden, heads int64) {
	nope, rope, value, rank := int64(m.NopeDim), int64(m.RopeDim), int64(m.ValueDim), int64(m.KVRank)
	if m.QueryRank > 0 {
		t.linear(name+".q_a_proj", int64(m.QueryRank), hidden, m.AttentionBias, replicated)
		t.norm(name+".q_a_layernorm", int64(m.QueryRank), false)
		t.linear(name+".q_b_proj", heads*(nope+rope), int64(m.QueryRank), false, headRows(m.Heads))
	} else {
		t.linear(name+".q_proj", heads*(nope+rope), hidden, false, headRows(m.Heads))
	}
	t.linear(name+".kv_a_proj_with_mqa", rank+rope, hidden, m.AttentionBias, replicated)
	t.norm(name+".kv_a_layernorm", rank, false)
	t.linear(name+".kv_b_proj", heads*(nope+value), rank, false, headRows(m.Heads))
	t.linear(name+".o_proj", hidden, heads*value, m.OutputBias, headColumns(m.Heads))
}
