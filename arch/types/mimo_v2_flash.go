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

// MiMoV2Flash is the configuration of model type "mimo_v2_flash": values smaller than queries and keys, sliding layers
// with more KV heads, attention sinks and a rope of their own, experts of DeepSeek's router and dense first layers.
// Absent keys have the defaults of transformers 5.23; sizes are required.
type MiMoV2Flash struct {
	config.Dense
	Mixture        config.Mixture
	SlidingRope    config.Rope // of sliding layers; Rope is of full ones
	ValueDim       int         // size of the heads of values
	ValueScale     float64     // of the values
	SlidingKVHeads int         // of sliding layers; KVHeads is of full ones
	// Sinks and SlidingSinks say whether full and sliding layers have attention sinks.
	Sinks, SlidingSinks bool
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "mimo_v2_flash",
		Architectures: []string{"MiMoV2FlashForCausalLM"},
		GGUF:          []gguf.Map{ggufMimo2},
		Published:     table.Published{Experts: table.PerExpert, HuggingFace: mimoSinks, MLX: mimoSinks},
		Idle: []arch.Idle{
			{Why: "no rope of the type has a context before scaling", Keys: []string{"original_max_position_embeddings"}},
		},
		Docs: arch.Docs{
			Variants: "smaller values, attention sinks, KV heads and rope by kind of layer, dense first layers",
			Rules:    "generic, also for experts",
			Draft:    "its own multi-token prediction head (the first of `model.mtp.*`)",
		},
	}, ParseMiMoV2Flash)
}

// ParseMiMoV2Flash parses the config.json of a mimo_v2_flash model.
func ParseMiMoV2Flash(data []byte) (*MiMoV2Flash, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &MiMoV2Flash{Dense: config.Dense{Common: config.ParseCommon(top, o, config.Defaults{
		Class: "MiMoV2FlashForCausalLM", KVHeads: 4, HeadDim: 192, Context: 131072, NormEps: 1e-5, BOS: []int32{1},
	}), Activation: o.Activation("hidden_act", config.SiLU...)}}
	m.OutputBias = false
	m.NormEps = o.Above("layernorm_epsilon", m.NormEps, 0)
	m.Intermediate = o.Integer("intermediate_size", 16384, 1, config.MaxWidth)
	if m.ValueScale = 1; !o.IsNull("attention_value_scale") {
		m.ValueScale = o.Above("attention_value_scale", 0.707, 0)
	}
	m.ValueDim = o.Integer("v_head_dim", 128, 1, config.MaxHeadDim)
	m.SlidingKVHeads = o.Integer("swa_num_key_value_heads", 2*m.KVHeads, 1, config.MaxHeads)
	if m.Heads%m.SlidingKVHeads != 0 {
		o.Fail("swa_num_key_value_heads",
			fmt.Sprintf("divide num_attention_heads = %d (it is %d)", m.Heads, m.SlidingKVHeads))
	}
	for key, want := range map[string]int{
		"swa_num_attention_heads": m.Heads, "swa_head_dim": m.HeadDim, "swa_v_head_dim": m.ValueDim,
	} {
		if got := o.Integer(key, want, 1, config.MaxWidth); got != want {
			o.Fail(key, fmt.Sprintf("be %d, as of full layers", want))
		}
	}
	m.SlidingSinks = o.Bool("add_swa_attention_sink_bias", true)
	m.Sinks = o.Bool("add_full_attention_sink_bias", false)
	m.ropes(o)
	m.slides(o)
	x := &m.Mixture
	x.ReadGrouped(o, m.Common, config.MixtureDefaults{Count: 256, PerToken: 8, Width: 2048, SumToOne: true})
	x.ReadDense(o, 1)
	if list := o.Integers("moe_layer_freq", config.MaxLayers, 0, 1); list != nil && !o.Has("mlp_layer_types") {
		if len(list) != m.Layers {
			o.Fail("moe_layer_freq", fmt.Sprintf("have %d elements, one per layer (it has %d)", m.Layers, len(list)))
			return config.Done(m, o)
		}
		for i, n := range list {
			x.Sparse[i] = n == 1
		}
	}
	return config.Done(m, o)
}

// ropes reads the ropes of full and of sliding layers: parameters per layer type, or the publisher's keys.
func (m *MiMoV2Flash) ropes(o config.Object) {
	const part = 0.334
	r := config.RopeOptions{HeadDim: m.HeadDim, Theta: 5e6, OwnPartial: part}
	swa := config.RopeOptions{HeadDim: m.HeadDim, Theta: 1e4, OwnPartial: part}
	if !o.Has("rope_parameters") {
		r.Theta, swa.Theta = o.Theta("rope_theta", r.Theta), o.Theta("swa_rope_theta", swa.Theta)
		r.OwnPartial = o.Number("partial_rotary_factor", part, config.IsShare, "be > 0 and <= 1")
		swa.OwnPartial = r.OwnPartial
	}
	m.Rope = config.ParseLayerRope(o, config.FullAttention, config.Object{}, m.Context, r)
	m.SlidingRope = config.ParseLayerRope(o, config.SlidingAttention, config.Object{}, m.Context, swa)
}

// slides reads which layers slide. The publisher's size of the window does not count a row's own position.
func (m *MiMoV2Flash) slides(o config.Object) {
	sliding := make([]bool, m.Layers)
	for i := range sliding {
		sliding[i] = i > 0 && (i+1)%6 != 0
	}
	kinds := o.Words("layer_types", m.Layers, config.FullAttention, config.SlidingAttention)
	list := o.Integers("hybrid_layer_pattern", config.MaxLayers, 0, 1)
	switch {
	case kinds != nil:
		sliding = config.SlidingOf(kinds)
	case list != nil && len(list) != m.Layers:
		o.Fail("hybrid_layer_pattern", fmt.Sprintf("have %d elements, one per layer (it has %d)", m.Layers, len(list)))
	case list != nil:
		for i, n := range list {
			sliding[i] = n == 1
		}
	}
	window := o.Integer("sliding_window", 129, 1, config.MaxContext)
	if o.Has("sliding_window_size") {
		window = o.Integer("sliding_window_size", 128, 0, config.MaxContext-1) + 1
	}
	m.Slide(window, sliding)
}

// Layer returns the sizes of a layer's attention, and whether it has sinks.
func (m *MiMoV2Flash) Layer(i int) (c config.Common, sinks bool) {
	if m.Window > 0 && m.Sliding[i] {
		return m.SlidingLayer()
	}
	return m.Common, m.Sinks
}

// SlidingLayer is Layer for layers that slide.
func (m *MiMoV2Flash) SlidingLayer() (c config.Common, sinks bool) {
	c = m.Common
	c.KVHeads = m.SlidingKVHeads
	return c, m.SlidingSinks
}

// Next returns the name prefix of the multi-token prediction head. It has a layer that slides, without experts.
// Published models have two more heads, for the tokens after that. As in other engines, the first one drafts them too.
func (m *MiMoV2Flash) Next() string { return m.Prefix + "mtp.layers.0." }

func (m *MiMoV2Flash) State() []config.LayerState {
	list := m.Dense.State()
	for i := range list {
		c, _ := m.Layer(i)
		list[i].PerToken = int64(c.KVHeads) * int64(c.HeadDim+m.ValueDim)
	}
	return list
}

func (m *MiMoV2Flash) Facts() config.Facts { return m.FactsAs("mimo_v2_flash", m.Rope, m.Table()) }

func (m *MiMoV2Flash) Table() table.Table {
	t := m.Decoder().OwnTable("mimo_v2_flash", config.Own{Mixer: func(t *table.Table, layer string, i int) bool {
		c, sinks := m.Layer(i)
		m.attends(t, layer+"self_attn", c, sinks)
		return true
	}})
	m.next(&t)
	return t
}

// Decoder implements [arch.Described].
func (m *MiMoV2Flash) Decoder() config.Decoder {
	return config.Decoder{
		Dense:       &m.Dense,
		Mixture:     &m.Mixture,
		SlidingRope: &m.SlidingRope,
		Description: decoder.Description{Sinks: m.sinks()},
	}
}

// sinks returns which layers have attention sinks.
func (m *MiMoV2Flash) sinks() []bool {
	sinks := make([]bool, m.Layers)
	for i := range sinks {
		_, sinks[i] = m.Layer(i)
	}
	return sinks
}

// attends adds the projections of attention, and its sinks.
func (m *MiMoV2Flash) attends(t *table.Table, name string, c config.Common, sinks bool) {
	hidden, heads, dim := int64(m.Hidden), int64(m.Heads), int64(m.ValueDim)
	out, keys, kv := table.QueryRows(c.Heads, c.KVHeads), table.KeyRows(c.Heads, c.KVHeads), int64(c.KVHeads)
	t.Linear(name+".q_proj", c.QueryWidth(), hidden, m.AttentionBias, out)
	t.Linear(name+".k_proj", kv*int64(m.HeadDim), hidden, m.AttentionBias, keys)
	t.Linear(name+".v_proj", kv*dim, hidden, m.AttentionBias, keys)
	t.Linear(name+".o_proj", hidden, heads*dim, false, table.QueryColumns(c.Heads, c.KVHeads))
	if sinks {
		s := t.Add(name+".sinks", out, heads)
		s.Aliases = []string{name + ".attention_sink_bias"}
	}
}

// next adds the multi-token prediction head. Without a window there is no layer that slides, and no head.
func (m *MiMoV2Flash) next(t *table.Table) {
	if m.Window > 0 {
		hidden, name := int64(m.Hidden), m.Next()
		c, sinks := m.SlidingLayer()
		m.AddNextPart(t, name)
		m.AddNextInputs(t, name)
		t.Norm(name+"input_layernorm", hidden, false)
		m.attends(t, name+"self_attn", c, sinks)
		t.Norm(name+"pre_mlp_layernorm", hidden, false)
		m.AddMLP(t, name+"mlp", m.Intermediate)
		t.Norm(name+"final_layernorm", hidden, false)
	}
	t.LeaveOut("mtp", "a further head for tokens after the next, for which the first one drafts", m.Prefix+"mtp.*")
}

// ggufRopes sets the ropes of full and of sliding layers, which have parts of a head and bases of their own.
func ggufRopes(c map[string]any, architecture string, f gguf.File) error {
	if err := gguf.SetPartial(c, architecture, f); err != nil {
		return err
	}
	full, ok := c["rope_scaling"].(map[string]any)
	if !ok {
		full = map[string]any{"rope_type": string(config.RopeDefault)}
	}
	full["rope_theta"], full["partial_rotary_factor"] = c["rope_theta"], c["partial_rotary_factor"]
	sliding := map[string]any{
		"rope_type": string(config.RopeDefault), "rope_theta": c["rope_theta"],
		"partial_rotary_factor": c["partial_rotary_factor"],
	}
	if theta, ok := f.Value(architecture + ".rope.freq_base_swa"); ok {
		sliding["rope_theta"] = theta
	}
	if v, ok := f.Value(architecture + ".rope.dimension_count_swa"); ok {
		n, _ := v.(json.Number)
		rotated, err := n.Int64()
		dim, errDim := gguf.Number(c, "head_dim")
		if err != nil || errDim != nil || dim < 1 {
			return fmt.Errorf("%w: %s.rope.dimension_count_swa = %v: want a part of a head", gguf.ErrMetadata, architecture,
				gguf.Shown(v))
		}
		sliding["partial_rotary_factor"] = float64(rotated) / float64(dim)
	}
	for _, key := range []string{"rope_scaling", "rope_theta", "partial_rotary_factor"} {
		delete(c, key)
	}
	c["rope_parameters"] = map[string]any{config.FullAttention: full, config.SlidingAttention: sliding}
	return nil
}

// ggufMimo2 is the mapping of mimo_v2_flash. llama.cpp takes the weights of experts to sum to 1, and does not scale
// them.
var ggufMimo2 = gguf.Map{
	Architecture: "mimo2",
	Limits:       gguf.Limits{Biases: gguf.NoBiases, OwnHead: true, AnySparse: true},
	Config: map[string]any{
		"model_type": "mimo_v2_flash", "architectures": []string{"MiMoV2FlashForCausalLM"}, "norm_topk_prob": true,
	},
	Keys: append(slices.DeleteFunc(gguf.GroupedKeys("n_routed_experts", ""), func(k gguf.Key) bool {
		return k.To == "" || k.To == "routed_scaling_factor" || k.To == "norm_topk_prob" || k.To == "first_k_dense_replace"
	}),
		gguf.Key{Key: "attention.value_length", To: "v_head_dim"},
		gguf.Key{Key: "attention.value_scale", To: "attention_value_scale", Optional: true},
		gguf.Key{Key: "attention.sliding_window", To: "sliding_window", Field: "Window"}),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.MLP, gguf.PreNorms, gguf.MoE,
		gguf.SharedExperts,
		gguf.Names(gguf.Op{}, "attn_sinks.weight", "self_attn.sinks")),
	Next: []gguf.Tensor{{
		Name: "blk.*" + gguf.AnyTensor, Why: "a head for tokens after the next, which is not supported for mimo_v2_flash",
	}},
	Adjust: adjustMimo2,
	Also: func(m gguf.Model) []gguf.Pair {
		q, ok := m.(*MiMoV2Flash)
		if !ok {
			return nil
		}
		heads := make([]int, q.Layers)
		for i := range heads {
			c, _ := q.Layer(i)
			heads[i] = c.KVHeads
		}
		sliding := q.Sliding
		if sliding == nil {
			sliding = make([]bool, q.Layers)
		}
		return []gguf.Pair{
			{Key: "attention.head_count_kv", Value: heads}, {Key: "attention.value_length", Value: q.ValueDim},
			{Key: "attention.value_scale", Value: float32(q.ValueScale)},
			{Key: "attention.sliding_window_pattern", Value: sliding},
			{Key: "rope.freq_base_swa", Value: float32(q.SlidingRope.Theta)},
		}
	},
	Refuse: func(m gguf.Model) string {
		q, ok := m.(*MiMoV2Flash)
		switch {
		case ok && q.Rope.PartialFactor != q.SlidingRope.PartialFactor:
			return "rotates the same part of a head in all layers"
		case ok && (q.Rope.Type != config.RopeDefault || q.SlidingRope.Type != config.RopeDefault):
			return "does not scale positions"
		}
		return ""
	},
}

func adjustMimo2(c map[string]any, f gguf.File) error {
	const architecture = "mimo2"
	heads, _ := c["num_key_value_heads"].([]any)
	sliding, _ := f.Value(architecture + ".attention.sliding_window_pattern")
	pattern, _ := sliding.([]any)
	if err := gguf.DropNext(c, architecture, f); err != nil {
		return err
	}
	layers, err := gguf.Layers(c)
	if err != nil {
		return err
	}
	if len(heads) < layers || len(pattern) < layers {
		return fmt.Errorf("%w: mimo2.attention.head_count_kv and sliding_window_pattern: want %d elements", gguf.ErrMetadata,
			layers)
	}
	kinds := make([]string, layers)
	for i := range kinds {
		_, sinks := f.Shape(fmt.Sprintf("blk.%d.attn_sinks.weight", i))
		if slides := pattern[i] == true || pattern[i] == json.Number("1"); slides {
			kinds[i] = config.SlidingAttention
			c["swa_num_key_value_heads"], c["add_swa_attention_sink_bias"] = heads[i], sinks
		} else {
			kinds[i] = config.FullAttention
			c["num_key_value_heads"], c["add_full_attention_sink_bias"] = heads[i], sinks
		}
	}
	if _, ok := c["num_key_value_heads"].([]any); ok { // all layers slide
		c["num_key_value_heads"] = heads[0]
	}
	c["layer_types"] = kinds
	if _, ok := c["attention_value_scale"]; !ok {
		c["attention_value_scale"] = nil // 1
	}
	c["layernorm_epsilon"] = c["rms_norm_eps"]
	if err := gguf.SetBiases(c, f); err != nil {
		return err
	}
	if err := gguf.SetSparse(c, f); err != nil {
		return err
	}
	return ggufRopes(c, architecture, f)
}

// mimoSinks are the published names of tensors, after those of the table.
var mimoSinks = []string{".self_attn.sinks", ".self_attn.attention_sink_bias"}
