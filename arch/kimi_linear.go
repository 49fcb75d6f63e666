package arch

import "fmt"

// KimiLinear is the configuration of model type "kimi_linear": gated delta nets with a gate for each column of a state,
// and latent attention without a rope. Layers have a feed-forward block or experts that a sigmoid router chooses.
// Absent keys have the defaults of transformers 5.23; sizes are required.
type KimiLinear struct {
	LatentDecoder
	Full  []bool // by layer: latent attention, else a delta net
	Delta GatedDelta
}

func init() {
	register(Arch{
		ModelType:     "kimi_linear",
		Architectures: []string{"KimiLinearForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseKimiLinear(config) },
		GGUF:          []GGUF{ggufKimiLinear},
		Docs: Docs{
			Variants: "delta nets with a decay of each channel, latent attention without a rope, shared experts, experts " +
				"named `w1` to `w3`",
			Rules: qwen35RulesDoc,
		},
	})
}

// kimiKeys are the keys that Kimi Linear has for those of DeepSeek V3.
var kimiKeys = [][2]string{
	{"model_max_length", "max_position_embeddings"}, {"moe_renormalize", "norm_topk_prob"},
	{"num_expert_group", "n_group"}, {"num_experts_per_token", "num_experts_per_tok"},
}

// ParseKimiLinear parses the config.json of a kimi_linear model.
func ParseKimiLinear(config []byte) (*KimiLinear, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	for _, pair := range kimiKeys {
		if own := pair[0]; o.has(own) {
			o.raw[pair[1]] = o.raw[own]
		}
	}
	m := &KimiLinear{LatentDecoder: parseLatent(top, o, commonDefaults{
		class: "KimiLinearForCausalLM", ctx: 1 << 20, eps: 1e-5, bos: []int32{163584}, eos: []int32{163586},
	}, latentDefaults{kv: 512, nope: 128, rope: 64, value: 128}, ropeOptions{})}
	m.Mixture.parseGrouped(o, m.Common, mixtureDefaults{
		count: 256, perToken: 8, width: 1024, sumToOne: true, scaling: 2.446, shared: 1,
	})
	m.Mixture.parseDense(o, 1)
	o.checkLayerFrequency()
	if f := o.str("moe_router_activation_func", "sigmoid"); f != "sigmoid" {
		o.fail("moe_router_activation_func", `be "sigmoid"`)
	}
	if !o.boolean("mla_use_nope", true) {
		o.fail("mla_use_nope", "be true: attention has no rope")
	}
	m.Rope = noRope
	m.parseDelta(o)
	return parsed(m, o)
}

// parseDelta reads the sizes of delta nets and which layers have one. Published models have these keys in an object of
// their own, which numbers layers from 1.
func (m *KimiLinear) parseDelta(o object) {
	own, nested := o.object("linear_attn_config")
	size := func(key, published string, def, hi int) int {
		if nested && own.has(published) {
			return own.integer(published, def, 1, hi)
		}
		return o.integer(key, def, 1, hi)
	}
	heads, dim := size("linear_num_heads", "num_heads", 32, maxHeads), size("linear_head_dim", "head_dim", 128, maxHeadDim)
	m.Delta = GatedDelta{KeyHeads: heads, ValueHeads: heads, KeyDim: dim, ValueDim: dim}
	if m.Delta.Kernel = size("linear_conv_kernel_dim", "short_conv_kernel_size", 4, maxTaps); m.Delta.Kernel < 2 {
		o.fail("linear_conv_kernel_dim", "be at least 2")
	}
	var ok bool
	if m.Full, ok = o.hybrid("layer_types", m.Layers); ok {
		return
	}
	const key = "full_attn_layers"
	if !nested || !own.has(key) {
		for i := range m.Full {
			m.Full[i] = i > 0 && i%4 == 0
		}
		return
	}
	for _, number := range own.integers(key, maxLayers, 1, m.Layers) {
		m.Full[number-1] = true
	}
	for _, number := range own.integers("kda_layers", maxLayers, 1, m.Layers) {
		if m.Full[number-1] {
			own.fail("kda_layers", fmt.Sprintf("not hold layer %d, which %s has, too", number, key))
		}
	}
}

// State implements [Model].
func (m *KimiLinear) State() []LayerState {
	list := m.LatentDecoder.State()
	for i := range list {
		if !m.Full[i] {
			list[i] = m.Delta.state()
		}
	}
	return list
}

// Facts implements [Model].
func (m *KimiLinear) Facts() Facts { return m.facts("kimi_linear", noRope, m.Table()) }

// Rules implements [Model].
func (m *KimiLinear) Rules() Rules {
	return deltaRules(m.Layers, ".self_attn.b_proj.weight", ".f_a_proj.weight", ".f_b_proj.weight")
}

// Table implements [Model].
func (m *KimiLinear) Table() Table {
	hidden := int64(m.Hidden)
	t := m.decoder("kimi_linear", false, func(t *Table, layer string, i int) {
		t.norm(layer+"input_layernorm", hidden, false)
		if m.Full[i] {
			m.latentAttention(t, layer+"self_attn")
		} else {
			t.columnDelta(layer+"self_attn", m.Delta, hidden)
		}
		t.norm(layer+"post_attention_layernorm", hidden, false)
		if m.Mixture.Sparse[i] {
			t.mixture(layer+"mlp", m.Mixture, m.Hidden)
		} else {
			m.mlp(t, layer+"mlp", m.Intermediate)
		}
	})
	// transformers writes all feed-forward blocks under the name that experts have.
	t.also(blockSparse...)
	return t
}

// columnDelta adds a delta net with a gate for each column of a state. Low-rank projections make its gates.
func (t *Table) columnDelta(name string, d GatedDelta, hidden int64) {
	by, count := headRows(d.KeyHeads), int64(d.KeyHeads)
	width, rank := int64(d.Keys()), int64(d.KeyDim)
	for _, part := range []string{".q_proj", ".k_proj", ".v_proj"} {
		t.linear(name+part, width, hidden, false, by)
	}
	t.linear(name+".b_proj", count, hidden, false, by)
	t.linear(name+".f_a_proj", rank, hidden, false, replicated)
	t.linear(name+".f_b_proj", width, rank, false, by)
	t.linear(name+".g_a_proj", rank, hidden, false, replicated)
	t.linear(name+".g_b_proj", width, rank, false, by)
	t.splitConv(name, d)
	t.add(name+".A_log", by, count).Reshape = [][]int64{{1, 1, count, 1}}
	t.add(name+".dt_bias", by, width).Reshape = [][]int64{{count, rank}}
	t.norm(name+".o_norm", rank, false)
	t.linear(name+".o_proj", hidden, width, false, headColumns(d.KeyHeads))
}
