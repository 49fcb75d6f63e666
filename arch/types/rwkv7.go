package types

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

// Rwkv7 is the configuration of model type "rwkv7": all layers are a recurrence with a state of fixed size, and a
// feed-forward block that also reads the row before. Absent keys have the defaults of flash-linear-attention; sizes are
// required.
type Rwkv7 struct {
	config.Common        // Heads of HeadDim channels fill the hidden size
	Intermediate  int    // of the feed-forward block
	First         bool   // norm_first: the first layer has a norm before all
	NormBias      bool   // biases of the norms
	Decay         int    // ranks of the products that give decays,
	Rate          int    // rates,
	Value         int    // the parts of the first layer's values,
	GateRank      int    // and gates
	Act           string // always "sqrelu"
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "rwkv7",
		Architectures: []string{"RWKV7ForCausalLM"},
		GGUF:          []gguf.Map{ggufRwkv7},
		Docs: arch.Docs{
			Variants: "layout of flash-linear-attention, in which `RWKV/RWKV7-*` are published",
			Rules:    "generic; the products that give decays, rates and gates get 8 bits",
			Code:     "[mlx-lm](https://github.com/ml-explore/mlx-lm/blob/v0.32.2/mlx_lm/models/rwkv7.py)",
		},
	}, ParseRwkv7)
}

// ParseRwkv7 parses the config.json of an rwkv7 model.
func ParseRwkv7(data []byte) (*Rwkv7, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	o = o.Renamed("rms_norm_eps", "norm_eps")
	hidden := o.Required("hidden_size", 1, config.MaxWidth)
	dim := 64
	if !o.Has("head_dim") && o.Has("num_heads") {
		dim = max(1, hidden/o.Integer("num_heads", 1, 1, config.MaxHeads))
	}
	dim = o.Integer("head_dim", dim, 1, config.MaxHeadDim)
	if hidden%dim != 0 {
		o.Fail("head_dim", fmt.Sprintf("divide hidden_size = %d", hidden))
	}
	o.Set("head_dim", dim)
	o.Set("num_attention_heads", max(1, hidden/dim))
	o.Set("num_key_value_heads", max(1, hidden/dim))
	m := &Rwkv7{
		Common: config.ParseCommon(top, o, config.Defaults{
			Class: "RWKV7ForCausalLM", Context: 2048, NormEps: 1e-5, BOS: []int32{1}, EOS: []int32{2},
		}),
		First:    o.Bool("norm_first", true),
		NormBias: o.Bool("norm_bias", true),
		Decay:    o.Integer("decay_low_rank_dim", 64, 1, config.MaxWidth),
		Rate:     o.Integer("a_low_rank_dim", 64, 1, config.MaxWidth),
		Value:    o.Integer("v_low_rank_dim", 16, 1, config.MaxWidth),
		GateRank: o.Integer("gate_low_rank_dim", 128, 1, config.MaxWidth),
		Act:      o.Activation("hidden_act", "sqrelu", "relu2"),
	}
	m.EmbedName = "embeddings"
	if o.Has("intermediate_size") {
		m.Intermediate = o.Integer("intermediate_size", 0, 1, config.MaxWidth)
	} else {
		wide := int(o.Above("hidden_ratio", 4, 0) * float64(hidden))
		if m.Intermediate = (wide + 31) / 32 * 32; wide < 1 || m.Intermediate > config.MaxWidth {
			o.Fail("hidden_ratio", fmt.Sprintf("give a width from 1 to %d", config.MaxWidth))
		}
	}
	m.sameValues(o)
	if o.Has("attn") {
		o.Fail("attn", "be null: layers of attention are not supported")
	}
	return config.Done(m, o)
}

// sameValues checks that all layers have values of the hidden size.
func (m *Rwkv7) sameValues(o config.Object) {
	if !o.Has("value_dim") {
		return
	}
	widths := []int{}
	if raw := o.Keys["value_dim"]; json.Valid(raw) && raw[0] == '[' {
		widths = o.Integers("value_dim", config.MaxLayers, 1, config.MaxWidth)
	} else {
		widths = append(widths, o.Integer("value_dim", m.Hidden, 1, config.MaxWidth))
	}
	for _, width := range widths {
		if width != m.Hidden {
			o.Fail("value_dim", fmt.Sprintf("be hidden_size = %d in all layers", m.Hidden))
			return
		}
	}
}

// State implements [arch.Model]. Each layer keeps the row before and a matrix for each head, and the row before of its
// feed-forward block.
func (m *Rwkv7) State() []config.LayerState {
	var list []config.LayerState
	row := int64(m.Hidden)
	for range m.Layers {
		list = append(list, config.LayerState{Fixed: row * int64(1+m.HeadDim)}, config.LayerState{Fixed: row})
	}
	return list
}

func (m *Rwkv7) Facts() config.Facts { return m.FactsAs("rwkv7", config.NoRope, m.Table()) }

func (m *Rwkv7) Rules() precision.Rules {
	return precision.Generic(m.Layers, precision.Rule{
		Name: "gives decays, rates or gates", Of: precision.Quantized, Has: []string{"_lora.lora."},
		Ends: []string{".weight"},
		Not:  []string{".lora.0.weight"}, To: []precision.Target{precision.EightBit, precision.Source},
	})
}

func (m *Rwkv7) Table() table.Table {
	hidden := int64(m.Hidden)
	norm := func(t *table.Table, name string) {
		t.Norm(name, hidden, false)
		if m.NormBias {
			t.Add(name+".bias", table.Whole, hidden)
		}
	}
	return m.TableWith("rwkv7", norm, func(t *table.Table, layer string, i int) {
		if m.First && i == 0 {
			norm(t, layer+"pre_norm")
		}
		norm(t, layer+"attn_norm")
		m.mixer(t, layer+"attn", i)
		norm(t, layer+"ffn_norm")
		t.Add(layer+"ffn.x_k", table.Whole, hidden).Reshape = [][]int64{{1, 1, hidden}}
		t.Linear(layer+"ffn.key", int64(m.Intermediate), hidden, false, table.Outputs)
		t.Linear(layer+"ffn.value", hidden, int64(m.Intermediate), false, table.Inputs)
	})
}

// mixer adds the tensors of a layer's recurrence. Ranks divide its heads.
func (m *Rwkv7) mixer(t *table.Table, name string, layer int) {
	hidden, heads := int64(m.Hidden), table.HeadRows(m.Heads)
	for i, part := range []string{"r", "w", "k", "v", "a", "g"} {
		s := t.Add(name+".x_"+part, table.Whole, hidden)
		s.Reshape = [][]int64{{1, 1, hidden}}
		// The first files have one tensor of the six.
		s.Layout, s.Group = table.Unfused, name+".x_x"
		s.Forms = []table.Form{{
			Layout: table.Fused, Make: table.Gather, Count: 1, Names: []string{name + ".x_x"}, Shapes: [][]int64{{6, hidden}},
			Runs: []table.Run{{Begin: int64(i) * hidden, Count: hidden, Step: hidden, Times: 1}},
		}}
	}
	perHead := [][]int64{{int64(m.Heads), int64(m.HeadDim)}, {1, 1, hidden}}
	t.Add(name+".k_k", heads, hidden).Reshape = perHead
	t.Add(name+".k_a", heads, hidden).Reshape = perHead
	t.Add(name+".r_k", heads, int64(m.Heads), int64(m.HeadDim)).Reshape = [][]int64{{hidden}}
	for _, part := range []string{".r_proj", ".k_proj", ".v_proj"} {
		t.Linear(name+part, hidden, hidden, false, heads)
	}
	t.Linear(name+".o_proj", hidden, hidden, false, table.HeadColumns(m.Heads))
	m.product(t, name+".w_lora", m.Decay, true)
	m.product(t, name+".a_lora", m.Rate, true)
	m.product(t, name+".g_lora", m.GateRank, false)
	if layer > 0 {
		m.product(t, name+".v_lora", m.Value, true)
	} else {
		t.Drop("not used: these values are the first", name+".v_lora.*")
	}
	t.Add(name+".g_norm.weight", heads, hidden).Reshape = perHead
	t.Add(name+".g_norm.bias", heads, hidden).Reshape = perHead
}

// product adds the two matrices of a product of low rank, for all heads.
func (m *Rwkv7) product(t *table.Table, name string, rank int, bias bool) {
	t.Linear(name+".lora.0", int64(rank), int64(m.Hidden), false, table.Whole)
	t.Linear(name+".lora.2", int64(m.Hidden), int64(rank), bias, table.HeadRows(m.Heads))
}

// ggufRwkv7 is the mapping of rwkv7, which is only imported. The first layer has copies of its rates' tensors in place
// of those of values, which it does not use.
var ggufRwkv7 = gguf.Map{
	Architecture: "rwkv7",
	ImportOnly:   true,
	Config:       map[string]any{"model_type": "rwkv7", "architectures": []string{"RWKV7ForCausalLM"}, "attn": nil},
	Keys: []gguf.Key{
		{Key: "block_count", To: "num_hidden_layers"},
		{Key: "context_length", To: "max_position_embeddings"},
		{Key: "embedding_length", To: "hidden_size"},
		{Key: "feed_forward_length", To: "intermediate_size"},
		{Key: "attention.layer_norm_epsilon", To: "norm_eps"},
		{Key: "wkv.head_size", To: "head_dim"},
		{Key: "attention.decay_lora_rank", To: "decay_low_rank_dim"},
		{Key: "attention.iclr_lora_rank", To: "a_low_rank_dim"},
		{Key: "attention.value_residual_mix_lora_rank", To: "v_low_rank_dim"},
		{Key: "attention.gate_lora_rank", To: "gate_low_rank_dim"},
	},
	Tensors: slices.Concat(rwkv7Ends(), gguf.Linears(gguf.Op{}, "attn_norm", "attn_norm", "attn_norm_2", "ffn_norm",
		"time_mix_ln", "attn.g_norm"), gguf.Names(gguf.Op{},
		"time_mix_lerp_fused.weight", "attn.x_x", "channel_mix_lerp_k.weight", "ffn.x_k",
		"time_mix_k_k.weight", "attn.k_k", "time_mix_k_a.weight", "attn.k_a", "time_mix_r_k.weight", "attn.r_k",
		"time_mix_receptance.weight", "attn.r_proj.weight", "time_mix_key.weight", "attn.k_proj.weight",
		"time_mix_value.weight", "attn.v_proj.weight", "time_mix_output.weight", "attn.o_proj.weight",
		"channel_mix_key.weight", "ffn.key.weight", "channel_mix_value.weight", "ffn.value.weight",
		"time_mix_g1.weight", "attn.g_lora.lora.0.weight", "time_mix_g2.weight", "attn.g_lora.lora.2.weight"),
		rwkv7Product("w"), rwkv7Product("a"), rwkv7Product("v")),
	Adjust: func(c map[string]any, f gguf.File) error {
		_, c["norm_first"] = f.Shape("token_embd_norm.weight")
		_, c["norm_bias"] = f.Shape("output_norm.bias")
		return nil
	},
}

func rwkv7Ends() []gguf.Tensor {
	list := []gguf.Tensor{
		{Name: gguf.Embedding, To: "model.embeddings.weight"}, {Name: gguf.Head, To: "lm_head.weight"},
	}
	for _, end := range []string{".weight", ".bias"} {
		list = append(list, gguf.Tensor{Name: "output_norm" + end, To: "model.norm" + end},
			gguf.Tensor{Name: "token_embd_norm" + end, To: "model.layers.0.pre_norm" + end})
	}
	return list
}

// rwkv7Product are the two matrices of a product of low rank, and its bias.
func rwkv7Product(part string) []gguf.Tensor {
	file, name := "time_mix_"+part, "attn."+part+"_lora.lora."
	return gguf.Names(gguf.Op{}, file+"0.weight", name+"2.bias",
		file+"1.weight", name+"0.weight", file+"2.weight", name+"2.weight")
}

// Carried implements [arch.Carrier]: the values of the first layer.
func (m *Rwkv7) Carried(layer int) int64 { return carriedTwice(m.Hidden, layer < m.Layers) }

func carriedTwice(hidden int, twice bool) int64 {
	if twice {
		return 2 * int64(hidden)
	}
	return int64(hidden)
}
