package types

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Laguna is the configuration of model type "laguna": gated attention with norms of queries and keys, heads and a rope
// by kind of layer, experts of a sigmoid router, a shared expert and dense first layers. Absent keys have the defaults
// of transformers 5.23; sizes are required.
type Laguna struct {
	config.Dense
	Mixture     config.Mixture
	SlidingRope config.Rope // of sliding layers; Rope is of full ones
	LayerHeads  []int       // query heads by layer
	PerHead     []bool      // by layer: the gate has one element for each head, not for each channel
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "laguna",
		Architectures: []string{"LagunaForCausalLM"},
		GGUF:          []gguf.Map{ggufLaguna},
		Published: table.Published{
			Experts: table.PerExpert,
			HuggingFace: []string{
				".mlp.gate.e_score_correction_bias", ".mlp.experts.e_score_correction_bias",
				".mlp.shared_experts.", ".mlp.shared_expert.",
			},
			MLX: lagunaOfMLX,
		},
		Idle: []arch.Idle{
			{Why: "no rope of the type has a context before scaling", Keys: []string{"original_max_position_embeddings"}},
			{Why: "another key of the type says it", Keys: []string{"mlp_only_layers", "partial_rotary_factor"}},
		},
		Fixed: []arch.Fixed{
			{Key: "decoder_sparse_step", Values: []string{"1"}},
		},
		Docs: arch.Docs{
			Variants: "gates per head or channel, heads by layer, sliding layers with a rope of their own, capped scores of " +
				"the router, shared expert, dense layers",
			Rules: "generic, also for experts",
		},
	}, ParseLaguna)
}

// ParseLaguna parses the config.json of a laguna model.
func ParseLaguna(data []byte) (*Laguna, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Laguna{Dense: config.Dense{Common: config.ParseCommon(top, o, config.Defaults{
		Class: "LagunaForCausalLM", KVHeads: 8, HeadDim: 128, Context: 131072, NormEps: 1e-6,
	}), Activation: o.Activation("hidden_act", config.SiLU...)}}
	m.Intermediate = o.Integer("intermediate_size", 8192, 1, config.MaxWidth)
	full := config.RopeOptions{HeadDim: m.HeadDim, OwnPartial: 1, Inherit: true}
	sliding := full
	if !o.Has("rope_parameters") {
		full.Theta, full.OwnPartial = 5e5, 0.5
	}
	m.Rope = config.ParseLayerRope(o, config.FullAttention, config.Object{}, m.Context, full)
	m.SlidingRope = config.ParseLayerRope(o, config.SlidingAttention, config.Object{}, m.Context, sliding)
	if kinds := o.Words("layer_types", m.Layers, config.FullAttention, config.SlidingAttention); kinds != nil {
		m.Slide(o.Integer("sliding_window", 512, 1, config.MaxContext), config.SlidingOf(kinds))
	}
	if m.heads(o); len(m.LayerHeads) > 0 {
		m.Heads = slices.Max(m.LayerHeads)
	}
	x := &m.Mixture
	x.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 256, PerToken: 8, Width: 512}, "moe_intermediate_size")
	x.Experts.NormTopK = true
	x.Router = config.Router{
		Sigmoid: true, Correction: true, Scaling: o.Above("moe_routed_scaling_factor", 1, 0),
		SoftCap: o.AtLeast("moe_router_logit_softcapping", 0, 0),
	}
	x.Shared = o.Integer("shared_expert_intermediate_size", 512, 1, config.MaxWidth)
	x.ReadDense(o, 1)
	if o.Bool("moe_apply_router_weight_on_input", false) {
		o.Fail("moe_apply_router_weight_on_input", "be false: the reference does not implement it")
	}
	return config.Done(m, o)
}

// heads reads the number of query heads and the kind of gate of each layer.
func (m *Laguna) heads(o config.Object) {
	const key = "num_attention_heads_per_layer"
	list := o.Integers(key, config.MaxLayers, 1, config.MaxHeads)
	if list != nil && len(list) != m.Layers {
		o.Fail(key, fmt.Sprintf("have %d elements, one per layer (it has %d)", m.Layers, len(list)))
		return
	}
	gates := o.Words("gating_types", m.Layers, "per_head", "per_element")
	perHead := false
	switch string(o.Keys["gating"]) {
	case "", "true", `"per-head"`:
		perHead = true
	case `"per-element"`:
	default:
		o.Fail("gating", `be true, "per-head" or "per-element"`)
	}
	for i := range m.Layers {
		n := m.Heads
		if list != nil {
			n = list[i]
		}
		if n%m.KVHeads != 0 {
			o.Fail(key, fmt.Sprintf("hold multiples of num_key_value_heads = %d (element %d is %d)", m.KVHeads, i, n))
		}
		m.LayerHeads = append(m.LayerHeads, n)
		m.PerHead = append(m.PerHead, gates == nil && perHead || gates != nil && gates[i] == "per_head")
	}
}

// Layer returns the sizes of a layer's attention.
func (m *Laguna) Layer(i int) config.Common {
	c := m.Common
	c.Heads = m.LayerHeads[i]
	return c
}

func (m *Laguna) Facts() config.Facts { return m.FactsAs("laguna", m.Rope, m.Table()) }

func (m *Laguna) Table() table.Table {
	t := m.Decoder().OwnTable("laguna", config.Own{Mixer: func(t *table.Table, layer string, i int) bool {
		c := m.Layer(i)
		gate := c.QueryWidth()
		if m.PerHead[i] {
			gate = int64(c.Heads)
		}
		c.AddAttention(t, layer+"self_attn", c.QueryWidth(), false)
		t.Linear(layer+"self_attn.g_proj", gate, int64(m.Hidden), false, table.QueryRows(c.Heads, c.KVHeads))
		return true
	}})
	const bias = "e_score_correction_bias"
	t.Also(lagunaOfMLX, []string{
		".mlp.gate." + bias, ".mlp.experts." + bias, ".mlp.shared_experts.", ".mlp.shared_expert.",
	})
	return t
}

// Decoder implements [arch.Described].
func (m *Laguna) Decoder() config.Decoder {
	return config.Decoder{
		Dense: &m.Dense, Mixture: &m.Mixture, SlidingRope: &m.SlidingRope,
		Description: decoder.Description{HeadNorms: decoder.QK, Gate: "g_proj"},
	}
}

// ggufLaguna is the mapping of laguna. Keys that end in _swa are those of sliding layers. A file without a pattern has
// a full layer before every three sliding ones.
var ggufLaguna = gguf.Map{
	Architecture: "laguna",
	Limits:       gguf.Limits{Betas: true},
	Config:       map[string]any{"model_type": "laguna", "architectures": []string{"LagunaForCausalLM"}},
	Keys: append(slices.DeleteFunc(gguf.GroupedKeys("num_experts", ""), func(k gguf.Key) bool {
		return k.To == "" || k.To == "n_group" || k.To == "topk_group" || k.To == "routed_scaling_factor"
	}),
		gguf.Key{
			Key: "expert_weights_scale", To: "moe_routed_scaling_factor", Field: "Router.Scaling", Optional: true,
		},
		gguf.Key{Key: "expert_shared_feed_forward_length", To: "shared_expert_intermediate_size", Field: "Shared"},
		gguf.Key{Key: "attention.sliding_window", To: "sliding_window", Field: "Window", Optional: true}),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.MLP, gguf.PreNorms, gguf.MoE,
		gguf.SharedExperts,
		gguf.HeadNorms, gguf.Names(gguf.Op{}, "attn_gate.weight", "self_attn.g_proj.weight")),
	Adjust: adjustLaguna,
	Also: func(m gguf.Model) []gguf.Pair {
		q, ok := m.(*Laguna)
		if !ok {
			return nil
		}
		pairs := []gguf.Pair{{Key: "attention.head_count", Value: q.LayerHeads}}
		if q.Window > 0 {
			pairs = append(pairs, alsoSliding(q.SlidingRope, q.HeadDim)...)
		}
		return pairs
	},
	Refuse: func(m gguf.Model) string {
		if q, ok := m.(*Laguna); ok && q.Window > 0 && q.SlidingRope.Type != config.RopeDefault {
			return "does not scale the positions of sliding layers"
		}
		return ""
	},
}

// alsoSliding are the keys of the rope of sliding layers.
func alsoSliding(r config.Rope, dim int) []gguf.Pair {
	return []gguf.Pair{
		{Key: "rope.freq_base_swa", Value: float32(r.Theta)},
		{Key: "rope.dimension_count_swa", Value: int(float64(dim) * r.PartialFactor)},
	}
}

func adjustLaguna(c map[string]any, f gguf.File) error {
	const architecture = "laguna"
	layers, err := gguf.Layers(c)
	if err != nil {
		return err
	}
	heads := c["num_attention_heads"]
	if list, ok := heads.([]any); ok {
		if len(list) != layers {
			return fmt.Errorf("%w: laguna.attention.head_count: want %d numbers", gguf.ErrMetadata, layers)
		}
		c["num_attention_heads_per_layer"], c["num_attention_heads"] = list, list[0]
	}
	gates := make([]string, layers)
	for i := range gates {
		rows, ok := f.Shape(fmt.Sprintf("blk.%d.attn_gate.weight", i))
		queries, okQ := f.Shape(fmt.Sprintf("blk.%d.attn_q.weight", i))
		if !ok || !okQ || len(rows) != 2 || len(queries) != 2 {
			return fmt.Errorf("%w: blk.%d.attn_gate.weight or attn_q.weight is missing", gguf.ErrMetadata, i)
		}
		if gates[i] = "per_head"; rows[0] == queries[0] {
			gates[i] = "per_element"
		}
	}
	c["gating_types"] = gates
	if v, ok := c["sliding_window"]; ok && v != json.Number("0") {
		kinds := make([]string, layers)
		for i := range kinds {
			if kinds[i] = config.SlidingAttention; i%4 == 0 {
				kinds[i] = config.FullAttention
			}
		}
		c["layer_types"] = kinds
		gguf.SetSliding(c, architecture, f)
	} else {
		c["layer_types"] = slices.Repeat([]string{config.FullAttention}, layers)
	}
	if err := gguf.SetBiases(c, f); err != nil {
		return err
	}
	if err := gguf.SetSparse(c, f); err != nil {
		return err
	}
	return ggufRopes(c, architecture, f)
}

// lagunaOfMLX are the names of tensors in checkpoints of mlx-lm, after those of the table.
var lagunaOfMLX = []string{
	".mlp.gate.weight", ".mlp.gate.proj.weight", ".mlp.shared_experts.", ".mlp.shared_expert.",
}
