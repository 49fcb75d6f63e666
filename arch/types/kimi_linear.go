package types

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

// KimiLinear is the configuration of model type "kimi_linear": gated delta nets with a gate for each column of a state,
// and latent attention without a rope. Layers have a feed-forward block or experts that a sigmoid router chooses.
// Absent keys have the defaults of transformers 5.23; sizes are required.
type KimiLinear struct {
	config.LatentDecoder
	Full  []bool // by layer: latent attention, else a delta net
	Delta config.GatedDelta
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "kimi_linear",
		Architectures: []string{"KimiLinearForCausalLM"},
		GGUF:          []gguf.Map{ggufKimiLinear},
		Idle: []arch.Idle{
			{Why: "attention has head sizes of its own", Keys: []string{"head_dim"}},
		},
		Docs: arch.Docs{
			Variants: "delta nets with a decay of each channel, latent attention without a rope, shared experts, experts " +
				"named `w1` to `w3`",
			Rules: qwen35RulesDoc,
		},
	}, ParseKimiLinear)
}

// kimiKeys are the keys that Kimi Linear has for those of DeepSeek V3.
var kimiKeys = [][2]string{
	{"model_max_length", "max_position_embeddings"}, {"moe_renormalize", "norm_topk_prob"},
	{"num_expert_group", "n_group"}, {"num_experts_per_token", "num_experts_per_tok"},
}

// ParseKimiLinear parses the config.json of a kimi_linear model.
func ParseKimiLinear(data []byte) (*KimiLinear, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	for _, pair := range kimiKeys {
		if own := pair[0]; o.Has(own) {
			o.Keys[pair[1]] = o.Keys[own]
		}
	}
	m := &KimiLinear{LatentDecoder: config.ParseLatent(top, o, config.Defaults{
		Class: "KimiLinearForCausalLM", Context: 1 << 20, NormEps: 1e-5, BOS: []int32{163584}, EOS: []int32{163586},
	}, config.LatentDefaults{Kv: 512, Nope: 128, Rope: 64, Value: 128}, config.RopeOptions{})}
	m.Mixture.ReadGrouped(o, m.Common, config.MixtureDefaults{
		Count: 256, PerToken: 8, Width: 1024, SumToOne: true, Scaling: 2.446, Shared: 1,
	})
	m.Mixture.ReadDense(o, 1)
	o.CheckLayerFrequency()
	if f := o.String("moe_router_activation_func", "sigmoid"); f != "sigmoid" {
		o.Fail("moe_router_activation_func", `be "sigmoid"`)
	}
	if !o.Bool("mla_use_nope", true) {
		o.Fail("mla_use_nope", "be true: attention has no rope")
	}
	m.Rope = config.NoRope
	m.parseDelta(o)
	return config.Done(m, o)
}

// parseDelta reads the sizes of delta nets and which layers have one. Published models have these keys in an object of
// their own, which numbers layers from 1.
func (m *KimiLinear) parseDelta(o config.Object) {
	own, nested := o.Object("linear_attn_config")
	size := func(key, published string, def, hi int) int {
		if nested && own.Has(published) {
			return own.Integer(published, def, 1, hi)
		}
		return o.Integer(key, def, 1, hi)
	}
	heads, dim := size("linear_num_heads", "num_heads", 32, config.MaxHeads), size("linear_head_dim", "head_dim", 128,
		config.MaxHeadDim)
	m.Delta = config.GatedDelta{KeyHeads: heads, ValueHeads: heads, KeyDim: dim, ValueDim: dim}
	if m.Delta.Kernel = size("linear_conv_kernel_dim", "short_conv_kernel_size", 4, config.MaxTaps); m.Delta.Kernel < 2 {
		o.Fail("linear_conv_kernel_dim", "be at least 2")
	}
	var ok bool
	if m.Full, ok = o.FullLayers("layer_types", m.Layers); ok {
		return
	}
	const key = "full_attn_layers"
	if !nested || !own.Has(key) {
		for i := range m.Full {
			m.Full[i] = i > 0 && i%4 == 0
		}
		return
	}
	for _, number := range own.Integers(key, config.MaxLayers, 1, m.Layers) {
		m.Full[number-1] = true
	}
	for _, number := range own.Integers("kda_layers", config.MaxLayers, 1, m.Layers) {
		if m.Full[number-1] {
			own.Fail("kda_layers", fmt.Sprintf("not hold layer %d, which %s has, too", number, key))
		}
	}
}

func (m *KimiLinear) State() []config.LayerState {
	list := m.LatentDecoder.State()
	for i := range list {
		if !m.Full[i] {
			list[i] = m.Delta.LayerState()
		}
	}
	return list
}

func (m *KimiLinear) Facts() config.Facts { return m.FactsAs("kimi_linear", config.NoRope, m.Table()) }

func (m *KimiLinear) Rules() precision.Rules {
	return config.DeltaRules(m.Layers, ".self_attn.b_proj.weight", ".f_a_proj.weight", ".f_b_proj.weight")
}

func (m *KimiLinear) Table() table.Table {
	t := m.Decoder().OwnTable("kimi_linear", config.Own{Mixer: func(t *table.Table, layer string, i int) bool {
		if m.Full[i] {
			m.AddLatentAttention(t, layer+"self_attn")
		} else {
			columnDelta(t, layer+"self_attn", m.Delta, int64(m.Hidden))
		}
		return true
	}})
	// transformers writes all feed-forward blocks under the name that experts have.
	t.Also(table.BlockSparse...)
	return t
}

// Decoder implements [arch.Described].
func (m *KimiLinear) Decoder() config.Decoder {
	return config.Decoder{
		Dense:       &m.Dense,
		Mixture:     &m.Mixture,
		Description: decoder.Description{RopeLayers: make([]bool, m.Layers)},
	}
}

// columnDelta adds a delta net with a gate for each column of a state. Low-rank projections make its gates.
func columnDelta(t *table.Table, name string, d config.GatedDelta, hidden int64) {
	by, count := table.HeadRows(d.KeyHeads), int64(d.KeyHeads)
	width, rank := int64(d.Keys()), int64(d.KeyDim)
	for _, part := range []string{".q_proj", ".k_proj", ".v_proj"} {
		t.Linear(name+part, width, hidden, false, by)
	}
	t.Linear(name+".b_proj", count, hidden, false, by)
	t.Linear(name+".f_a_proj", rank, hidden, false, table.Whole)
	t.Linear(name+".f_b_proj", width, rank, false, by)
	t.Linear(name+".g_a_proj", rank, hidden, false, table.Whole)
	t.Linear(name+".g_b_proj", width, rank, false, by)
	d.AddSplitConv(t, name)
	t.Add(name+".A_log", by, count).Reshape = [][]int64{{1, 1, count, 1}}
	t.Add(name+".dt_bias", by, width).Reshape = [][]int64{{count, rank}}
	t.Norm(name+".o_norm", rank, false)
	t.Linear(name+".o_proj", hidden, width, false, table.HeadColumns(d.KeyHeads))
}

// ggufKimiLinear is the mapping of kimi_linear, which is only imported. Layers with a delta net have 0 key heads.
var ggufKimiLinear = gguf.Map{
	Architecture: "kimi-linear",
	ImportOnly:   true,
	Config: map[string]any{
		"model_type": "kimi_linear", "architectures": []string{"KimiLinearForCausalLM"}, "q_lora_rank": nil,
		"norm_topk_prob": true,
	},
	Keys: append(gguf.GroupedKeys("num_experts", "num_shared_experts"),
		gguf.Key{Key: "attention.q_lora_rank", To: "q_lora_rank", Optional: true},
		gguf.Key{Key: "attention.kv_lora_rank", To: "kv_lora_rank"},
		gguf.Key{Key: "attention.value_length_mla", To: "v_head_dim"},
		gguf.Key{Key: "rope.dimension_count", To: "qk_rope_head_dim"},
		gguf.Key{Key: "ssm.conv_kernel", To: "linear_conv_kernel_dim"},
		gguf.Key{Key: "kda.head_dim", To: "linear_head_dim"}),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.Latent(), gguf.MoE, gguf.SharedExperts,
		gguf.Names(gguf.Op{}, "ssm_conv1d_q.weight", "self_attn.q_conv1d.weight",
			"ssm_conv1d_k.weight", "self_attn.k_conv1d.weight", "ssm_conv1d_v.weight", "self_attn.v_conv1d.weight",
			"ssm_f_a.weight", "self_attn.f_a_proj.weight", "ssm_f_b.weight", "self_attn.f_b_proj.weight",
			"ssm_g_a.weight", "self_attn.g_a_proj.weight", "ssm_g_b.weight", "self_attn.g_b_proj.weight",
			"ssm_beta.weight", "self_attn.b_proj.weight", "ssm_dt.bias", "self_attn.dt_bias",
			"ssm_norm.weight", "self_attn.o_norm.weight"),
		gguf.Names(gguf.LogOf(gguf.Op{}), "ssm_a", "self_attn.A_log", "ssm_a.weight", "self_attn.A_log")),
	Adjust: func(c map[string]any, f gguf.File) error {
		if err := gguf.SetLatent(c, "kimi-linear", f); err != nil {
			return err
		}
		layers, err := gguf.Layers(c)
		if err != nil {
			return err
		}
		kinds := make([]string, layers)
		for i := range kinds {
			if kinds[i] = config.FullAttention; !gguf.LayerHas(f, i, "attn_kv_a_mqa.weight") {
				kinds[i] = config.LinearAttention
				shape, ok := f.Shape(fmt.Sprintf("blk.%d.ssm_beta.weight", i))
				if !ok || len(shape) != 2 {
					return fmt.Errorf("%w: layer %d has neither attention nor a delta net", gguf.ErrMetadata, i)
				}
				c["linear_num_heads"] = shape[0]
			}
		}
		c["layer_types"] = kinds
		delete(c, "rope_scaling")
		return nil
	},
}
