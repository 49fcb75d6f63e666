package arch

import (
	"fmt"
	"slices"
)

// Laguna is the configuration of model type "laguna": gated attention with norms of queries and keys, heads and a rope
// by kind of layer, experts of a sigmoid router, a shared expert and dense first layers. Absent keys have the defaults
// of transformers 5.23; sizes are required.
type Laguna struct {
	Dense
	Mixture     Mixture
	SlidingRope Rope   // of sliding layers; Rope is of full ones
	LayerHeads  []int  // query heads by layer
	PerHead     []bool // by layer: the gate has one element for each head, not for each channel
}

func init() {
	register(Arch{
		ModelType:     "laguna",
		Architectures: []string{"LagunaForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseLaguna(config) },
		GGUF:          []GGUF{ggufLaguna},
		Docs: Docs{
			Variants: "gates per head or channel, heads by layer, sliding layers with a rope of their own, capped scores of " +
				"the router, shared expert, dense layers",
			Rules: "generic, also for experts",
		},
	})
}

// ParseLaguna parses the config.json of a laguna model.
func ParseLaguna(config []byte) (*Laguna, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Laguna{Dense: Dense{Common: parseCommon(top, o, commonDefaults{
		class: "LagunaForCausalLM", kv: 8, dim: 128, ctx: 131072, eps: 1e-6,
	}), Activation: o.activation("hidden_act", silu...)}}
	m.Intermediate = o.integer("intermediate_size", 8192, 1, maxWidth)
	full := ropeOptions{headDim: m.HeadDim, ownPartial: 1, inherit: true}
	sliding := full
	if !o.has("rope_parameters") {
		full.theta, full.ownPartial = 5e5, 0.5
	}
	m.Rope = parseLayerRope(o, fullAttention, object{}, m.Context, full)
	m.SlidingRope = parseLayerRope(o, slidingAttention, object{}, m.Context, sliding)
	if kinds := o.kinds("layer_types", m.Layers, fullAttention, slidingAttention); kinds != nil {
		m.slide(o.integer("sliding_window", 512, 1, maxContext), slidingOf(kinds))
	}
	if m.heads(o); len(m.LayerHeads) > 0 {
		m.Heads = slices.Max(m.LayerHeads)
	}
	x := &m.Mixture
	x.parseExperts(o, m.Common, mixtureDefaults{count: 256, perToken: 8, width: 512}, "moe_intermediate_size")
	x.Experts.NormTopK = true
	x.Router = Router{
		Sigmoid: true, Correction: true, Scaling: o.above("moe_routed_scaling_factor", 1, 0),
		SoftCap: o.atLeast("moe_router_logit_softcapping", 0, 0),
	}
	x.Shared = o.integer("shared_expert_intermediate_size", 512, 1, maxWidth)
	x.parseDense(o, 1)
	if o.boolean("moe_apply_router_weight_on_input", false) {
		o.fail("moe_apply_router_weight_on_input", "be false: the reference does not implement it")
	}
	return parsed(m, o)
}

// heads reads the number of query heads and the kind of gate of each layer.
func (m *Laguna) heads(o object) {
	const key = "num_attention_heads_per_layer"
	list := o.integers(key, maxLayers, 1, maxHeads)
	if list != nil && len(list) != m.Layers {
		o.fail(key, fmt.Sprintf("have %d elements, one per layer (it has %d)", m.Layers, len(list)))
		return
	}
	gates := o.kinds("gating_types", m.Layers, "per_head", "per_element")
	perHead := false
	switch string(o.raw["gating"]) {
	case "", "true", `"per-head"`:
		perHead = true
	case `"per-element"`:
	default:
		o.fail("gating", `be true, "per-head" or "per-element"`)
	}
	for i := range m.Layers {
		n := m.Heads
		if list != nil {
			n = list[i]
		}
		if n%m.KVHeads != 0 {
			o.fail(key, fmt.Sprintf("hold multiples of num_key_value_heads = %d (element %d is %d)", m.KVHeads, i, n))
		}
		m.LayerHeads = append(m.LayerHeads, n)
		m.PerHead = append(m.PerHead, gates == nil && perHead || gates != nil && gates[i] == "per_head")
	}
}

// Layer returns the sizes of a layer's attention.
func (m *Laguna) Layer(i int) Common {
	c := m.Common
	c.Heads = m.LayerHeads[i]
	return c
}

// Facts implements [Model].
func (m *Laguna) Facts() Facts { return m.facts("laguna", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Laguna) Table() Table {
	hidden := int64(m.Hidden)
	t := m.decoder("laguna", false, func(t *Table, layer string, i int) {
		c := m.Layer(i)
		gate := c.queries()
		if m.PerHead[i] {
			gate = int64(c.Heads)
		}
		t.norm(layer+"input_layernorm", hidden, false)
		c.attention(t, layer+"self_attn", c.queries(), false)
		t.linear(layer+"self_attn.g_proj", gate, hidden, false, queryRows(c.Heads, c.KVHeads))
		t.norm(layer+"post_attention_layernorm", hidden, false)
		if m.Mixture.Sparse[i] {
			t.mixture(layer+"mlp", m.Mixture, m.Hidden)
		} else {
			m.mlp(t, layer+"mlp", m.Intermediate)
		}
	})
	const bias = "e_score_correction_bias"
	t.also(publishedNames["laguna"].mlx, []string{
		".mlp.gate." + bias, ".mlp.experts." + bias, ".mlp.shared_experts.", ".mlp.shared_expert.",
	})
	return t
}
