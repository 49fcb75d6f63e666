package types

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
)

// ggufQwen35 and ggufQwen35Moe are the mappings of qwen3_5 and qwen3_5_moe. The converter adds 1 to the weights of
// norms but not to those of gated delta nets, stores -exp(A_log), drops the dimension of 1 of the convolution, and
// orders value heads so that those of a key head are far apart.
var (
	ggufQwen35 = gguf.Map{
		Architecture: "qwen35",
		Config:       map[string]any{"model_type": "qwen3_5_text", "architectures": []string{"Qwen3_5ForCausalLM"}},
		Keys:         gguf.Keys(qwen35Keys...),
		Tensors:      slices.Concat(qwen35Tensors, gguf.MLP),
		Next:         qwen35Next(slices.Concat(qwen35Tensors, gguf.MLP)),
		Adjust:       adjustQwen35("qwen35"),
		Also:         alsoQwen35,
		Refuse:       refuseQwen35,
	}
	ggufQwen35Moe = gguf.Map{
		Architecture: "qwen35moe",
		Config:       map[string]any{"model_type": "qwen3_5_moe_text", "architectures": []string{"Qwen3_5MoeForCausalLM"}},
		Keys: gguf.Keys(slices.Concat(qwen35Keys, gguf.ExpertKeys, []gguf.Key{
			{Key: "expert_count", To: "num_experts", Field: "Experts.Count"},
			{Key: "expert_shared_feed_forward_length", To: "shared_expert_intermediate_size", Field: "SharedIntermediate"},
		})...),
		Tensors: slices.Concat(qwen35Tensors, gguf.MLP, qwen35MoE),
		Next:    qwen35Next(slices.Concat(qwen35Tensors, qwen35MoE)),
		Adjust:  adjustQwen35("qwen35moe"),
		Also:    alsoQwen35,
		Refuse:  refuseQwen35,
	}
)

// ggufQwen3Next is the mapping of qwen3_next, which is only imported: models are written as [ggufQwen35Moe]. Value
// heads are in order. Older files have the four input projections in ssm_in, as checkpoints do.
var ggufQwen3Next = qwen3Next()

func qwen3Next() gguf.Map {
	g := ggufQwen35Moe
	g.Architecture, g.ImportOnly = "qwen3next", true
	g.Config = map[string]any{"model_type": "qwen3_next", "architectures": []string{"Qwen3NextForCausalLM"}}
	tensors := slices.Concat(gguf.Ends(gguf.PlusOne), gguf.QK, gguf.Values, qwen35Norms, gguf.Names(gguf.Op{},
		"ssm_in.weight", "linear_attn.in_proj_qkvz.weight", "ssm_ba.weight", "linear_attn.in_proj_ba.weight",
		"attn_qkv.weight", "linear_attn.in_proj_qkv.weight", "attn_gate.weight", "linear_attn.in_proj_z.weight",
		"ssm_conv1d.weight", "linear_attn.conv1d.weight", "ssm_dt.bias", "linear_attn.dt_bias",
		"ssm_out.weight", "linear_attn.out_proj.weight"), gguf.Names(gguf.LogOf(gguf.Op{}), "ssm_a", "linear_attn.A_log"))
	g.Tensors = slices.Concat(tensors, gguf.MLP, qwen35MoE)
	g.Next = qwen35Next(slices.Concat(tensors, qwen35MoE))
	g.Adjust = adjustQwen35(g.Architecture)
	return g
}

var qwen35Keys = []gguf.Key{
	{Key: "ssm.conv_kernel", To: "linear_conv_kernel_dim", Field: "Delta.Kernel"},
	{Key: "ssm.state_size", To: "linear_key_head_dim", Field: "Delta.KeyDim"},
	{Key: "ssm.group_count", To: "linear_num_key_heads", Field: "Delta.KeyHeads"},
	{Key: "ssm.time_step_rank", To: "linear_num_value_heads", Field: "Delta.ValueHeads"},
	{Key: "full_attention_interval", To: "full_attention_interval", Optional: true},
}

// qwen35Norms are the norms of layers.
var qwen35Norms = slices.Concat(
	gguf.Names(gguf.PlusOne, "attn_norm.weight", "input_layernorm.weight",
		"post_attention_norm.weight", "post_attention_layernorm.weight",
		"attn_q_norm.weight", "self_attn.q_norm.weight", "attn_k_norm.weight", "self_attn.k_norm.weight"),
	gguf.Names(gguf.Op{}, "ssm_norm.weight", "linear_attn.norm.weight"),
)

var qwen35Tensors = slices.Concat(
	gguf.Ends(gguf.PlusOne), gguf.QK, gguf.Values, qwen35Norms,
	gguf.Names(deltaRows(func(d config.GatedDelta) (int, int) { return 2 * d.Keys(), d.ValueDim }),
		"attn_qkv.weight", "linear_attn.in_proj_qkv.weight", "ssm_conv1d.weight", "linear_attn.conv1d.weight"),
	gguf.Names(deltaRows(func(d config.GatedDelta) (int, int) { return 0, d.ValueDim }),
		"attn_gate.weight", "linear_attn.in_proj_z.weight"),
	gguf.Names(deltaRows(perValueHead), "ssm_beta.weight", "linear_attn.in_proj_b.weight",
		"ssm_alpha.weight", "linear_attn.in_proj_a.weight", "ssm_dt.bias", "linear_attn.dt_bias"),
	gguf.Names(gguf.LogOf(deltaRows(perValueHead)), "ssm_a", "linear_attn.A_log"),
	gguf.Names(gguf.Op{What: "the columns of value heads in order", Blocks: deltaColumns},
		"ssm_out.weight", "linear_attn.out_proj.weight"),
)

// qwen35MoE is a router, its experts, and the one that every token has.
var qwen35MoE = slices.Concat(gguf.MoE, gguf.Names(gguf.Op{},
	"ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight",
	"ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight",
	"ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight",
	"ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight"))

// qwen35Next are the tensors of the head that predicts the token after the next.
func qwen35Next(layers []gguf.Tensor) []gguf.Tensor {
	next := slices.DeleteFunc(slices.Clone(layers), func(t gguf.Tensor) bool { return !strings.HasPrefix(t.Name, "blk.") })
	for i := range next {
		next[i].To = strings.Replace(next[i].To, "model.", "mtp.", 1)
	}
	for _, pair := range [][2]string{
		{"enorm", "pre_fc_norm_embedding"}, {"hnorm", "pre_fc_norm_hidden"}, {"shared_head_norm", "norm"},
	} {
		next = append(next, gguf.Tensor{
			Name: "blk.*.nextn." + pair[0] + ".weight", To: "mtp." + pair[1] + ".weight", Op: gguf.PlusOne,
		})
	}
	return append(next, gguf.Tensor{Name: "blk.*.nextn.eh_proj.weight", To: "mtp.fc.weight"})
}

func perValueHead(config.GatedDelta) (before, rows int) { return 0, 1 }

// deltaOf returns the sizes of a model's gated delta nets.
func deltaOf(m gguf.Model) (config.GatedDelta, bool) {
	q, ok := qwen35Of(m)
	if !ok {
		return config.GatedDelta{}, false
	}
	return q.Delta, true
}

func qwen35Of(m gguf.Model) (*Qwen35, bool) {
	if moe, ok := m.(*Qwen35Moe); ok {
		return &moe.Qwen35, true
	}
	q, ok := m.(*Qwen35)
	return q, ok
}

// headOf returns the place that value head i has in a file: there, the first heads of all key heads come first.
func headOf(d config.GatedDelta, i int64) int64 {
	each := int64(d.ValueHeads / d.KeyHeads)
	return i%each*int64(d.KeyHeads) + i/each
}

// deltaRows puts the rows of value heads in order. sizes returns the rows before them and the rows of a head.
func deltaRows(sizes func(config.GatedDelta) (before, rows int)) gguf.Op {
	return gguf.Op{What: "the rows of value heads in order", Rows: func(m gguf.Model, rows int64) []int64 {
		d, ok := deltaOf(m)
		if !ok {
			return nil
		}
		before, one := sizes(d)
		order := make([]int64, rows)
		for i := range order {
			order[i] = int64(i)
			if at := int64(i - before); at >= 0 {
				order[i] = int64(before) + headOf(d, at/int64(one))*int64(one) + at%int64(one)
			}
		}
		return order
	}}
}

func deltaColumns(m gguf.Model, columns int64) ([]int64, int64) {
	d, ok := deltaOf(m)
	if !ok || columns != int64(d.Values()) {
		return nil, 0
	}
	order := make([]int64, d.ValueHeads)
	for i := range order {
		order[i] = headOf(d, int64(i))
	}
	return order, int64(d.ValueDim)
}

func adjustQwen35(architecture string) func(c map[string]any, f gguf.File) error {
	return func(c map[string]any, f gguf.File) error {
		heads, err := gguf.Number(c, "linear_num_value_heads")
		if err != nil || heads < 1 {
			return fmt.Errorf("%w: %s.ssm.time_step_rank: want the number of value heads", gguf.ErrMetadata, architecture)
		}
		inner, _ := f.Value(architecture + ".ssm.inner_size")
		n, _ := inner.(json.Number)
		size, err := n.Int64()
		if err != nil || size%heads != 0 {
			return fmt.Errorf("%w: %s.ssm.inner_size = %v: want a multiple of the %d value heads",
				gguf.ErrMetadata, architecture, gguf.Shown(inner), heads)
		}
		c["linear_value_head_dim"] = size / heads
		// The heads for further tokens are numbered as layers after the last.
		if err := gguf.DropNext(c, architecture, f); err != nil {
			return err
		}
		layers, err := gguf.Layers(c)
		if err != nil {
			return err
		}
		kinds := make([]string, layers)
		for i := range kinds {
			kinds[i] = config.LinearAttention
			if _, full := f.Shape(fmt.Sprintf("blk.%d.attn_q.weight", i)); full {
				kinds[i] = config.FullAttention
				_, c["attention_bias"] = f.Shape(fmt.Sprintf("blk.%d.attn_q.bias", i))
			}
		}
		c["layer_types"] = kinds
		return qwen35Rope(c, architecture, f)
	}
}

// qwen35Rope sets the rotated share of a head, and the sections of the three positions.
func qwen35Rope(c map[string]any, architecture string, f gguf.File) error {
	rope := map[string]any{"rope_type": "default", "mrope_interleaved": true}
	if scaling, ok := c["rope_scaling"].(map[string]any); ok {
		for key, v := range scaling {
			rope[key] = v
		}
	}
	rotated, _ := f.Value(architecture + ".rope.dimension_count")
	n, _ := rotated.(json.Number)
	size, err := n.Int64()
	dim, errDim := gguf.Number(c, "head_dim")
	if err != nil || errDim != nil || dim < 1 {
		return fmt.Errorf("%w: %s.rope.dimension_count and attention.key_length: want two numbers", gguf.ErrMetadata,
			architecture)
	}
	rope["partial_rotary_factor"] = float64(size) / float64(dim)
	if v, ok := f.Value(architecture + ".rope.dimension_sections"); ok {
		if list, ok := v.([]any); ok && len(list) >= 3 {
			rope["mrope_section"] = list[:3]
		}
	}
	if theta, ok := c["rope_theta"]; ok {
		rope["rope_theta"] = theta
	}
	c["rope_scaling"] = rope
	return nil
}

func alsoQwen35(m gguf.Model) []gguf.Pair {
	q, ok := qwen35Of(m)
	if !ok {
		return nil
	}
	recurrent := make([]bool, len(q.Full))
	for i, full := range q.Full {
		recurrent[i] = !full
	}
	return []gguf.Pair{
		{Key: "ssm.inner_size", Value: q.Delta.Values()},
		{Key: "full_attention_interval", Value: 1 + slices.Index(q.Full, true)}, // for versions without the next key
		{Key: "attention.recurrent_layers", Value: recurrent},
		{Key: "rope.dimension_sections", Value: []int{q.Sections[0], q.Sections[1], q.Sections[2], 0}},
	}
}

func refuseQwen35(m gguf.Model) string {
	if d, _ := deltaOf(m); d.KeyDim != d.ValueDim {
		return fmt.Sprintf("has key and value heads of one size, and the model of %d and %d", d.KeyDim, d.ValueDim)
	}
	if q, ok := m.(*Qwen35Moe); ok && q.SharedIntermediate == 0 {
		return "has a shared expert"
	}
	return ""
}
