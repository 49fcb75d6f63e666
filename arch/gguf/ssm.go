package gguf

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch/config"
)

// Backbone are the tensors outside of layers of models that call them backbone, and the norms of layers.
func Backbone() []Tensor {
	return append([]Tensor{
		{Name: Embedding, To: "backbone.embeddings.weight"},
		{Name: "output_norm.weight", To: "backbone.norm_f.weight"},
		{Name: Head, To: "lm_head.weight"},
	}, Under("backbone.layers.*.", Names(Op{}, "attn_norm.weight", "norm.weight"))...)
}

// SSMKeys are the sizes of Mamba 2 layers, under the given keys of config.json.
func SSMKeys(kernel, state, groups, heads string) []Key {
	return []Key{
		{Key: "ssm.conv_kernel", To: kernel, Field: "SSM.Kernel"},
		{Key: "ssm.state_size", To: state, Field: "SSM.State"},
		{Key: "ssm.group_count", To: groups, Field: "SSM.Groups"},
		{Key: "ssm.time_step_rank", To: heads, Field: "SSM.Heads"},
	}
}

// HybridSSM are those of hybrid models.
var HybridSSM = SSMKeys("mamba_d_conv", "mamba_d_state", "mamba_n_groups", "mamba_n_heads")

// SSM are the tensors of a Mamba 2 layer. The converter writes a column for each number of a head, and a row of the
// norm for each group.
func SSM(name string) []Tensor {
	column := func(_ Model, shape []int64) []int64 { return []int64{shape[0], 1} }
	list := slices.Concat(
		Linears(Op{}, "ssm_in", name+".in_proj", "ssm_conv1d", name+".conv1d", "ssm_out", name+".out_proj"),
		Names(Op{}, "ssm_dt.bias", name+".dt_bias", "ssm_d", name+".D", "ssm_norm.weight", name+".norm.weight"),
		Names(LogOf(Op{}), "ssm_a", name+".A_log"))
	for i := range list {
		switch list[i].Name {
		case "blk.*.ssm_a", "blk.*.ssm_d":
			list[i].Shape = column
		case "blk.*.ssm_norm.weight":
			list[i].Shape = func(m Model, shape []int64) []int64 {
				d, _ := Field[config.SSM](m, "SSM")
				groups := int64(max(d.Groups, 1))
				return []int64{groups, shape[0] / groups}
			}
		}
	}
	return list
}

// RefuseSSM says why llama.cpp cannot compute a model with Mamba 2 layers; "" = it can.
func RefuseSSM(m Model) string {
	d, ok := Field[config.SSM](m, "SSM")
	switch {
	case !ok:
	case !d.ConvBias:
		return "has biases of the convolutions of Mamba layers"
	case d.Bias || d.OutputBias:
		return "has no biases of the projections of Mamba layers"
	case d.Norm == config.NormBeforeGate:
		return "normalizes the output of Mamba layers behind the gate"
	}
	return ""
}

// SetInner sets the size of a head, and how much wider than the model all heads together are, under the given keys.
func SetInner(c map[string]any, architecture string, f File, headsKey, dim, expand string) error {
	heads, err := Number(c, headsKey)
	hidden, errHidden := Number(c, "hidden_size")
	inner, _ := f.Value(architecture + ".ssm.inner_size")
	n, _ := inner.(json.Number)
	size, errSize := n.Int64()
	if err != nil || errHidden != nil || errSize != nil || heads < 1 || hidden < 1 || size%heads != 0 {
		return fmt.Errorf("%w: %s.ssm.inner_size = %v: want a multiple of the %v heads", ErrMetadata, architecture,
			Shown(inner), Shown(c[headsKey]))
	}
	c[dim] = size / heads
	if size%hidden == 0 {
		c[expand] = size / hidden
	}
	return nil
}

// SetHybridBiases sets the biases of Mamba 2 layers of hybrid models, and the sizes of heads.
func SetHybridBiases(c map[string]any, architecture string, f File) error {
	c["mamba_conv_bias"] = AnyLayer(c, f, "ssm_conv1d.bias")
	c["mamba_proj_bias"] = AnyLayer(c, f, "ssm_in.bias")
	c["attention_bias"] = AnyLayer(c, f, "attn_q.bias")
	return SetInner(c, architecture, f, "mamba_n_heads", "mamba_d_head", "mamba_expand")
}

// ChannelKeys are the sizes of Mamba layers, under the given keys of config.json.
func ChannelKeys(kernel, state, rank string) []Key {
	return []Key{
		{Key: "ssm.conv_kernel", To: kernel, Field: "SSM.Kernel"},
		{Key: "ssm.state_size", To: state, Field: "SSM.State"},
		{Key: "ssm.time_step_rank", To: rank, Field: "SSM.Rank"},
	}
}

// ChannelSSM are the tensors of a Mamba layer.
func ChannelSSM(name string) []Tensor {
	return slices.Concat(
		Linears(Op{}, "ssm_in", name+".in_proj", "ssm_conv1d", name+".conv1d", "ssm_out", name+".out_proj",
			"ssm_x", name+".x_proj", "ssm_dt", name+".dt_proj"),
		Names(Op{}, "ssm_d", name+".D", "ssm_dt_norm.weight", name+".dt_layernorm.weight",
			"ssm_b_norm.weight", name+".b_layernorm.weight", "ssm_c_norm.weight", name+".c_layernorm.weight"),
		Names(LogOf(Op{}), "ssm_a", name+".A_log"))
}

// SetExpand sets how much wider than the model a Mamba layer is.
func SetExpand(c map[string]any, architecture string, f File, expand string) error {
	hidden, err := Number(c, "hidden_size")
	inner, _ := f.Value(architecture + ".ssm.inner_size")
	n, _ := inner.(json.Number)
	size, errSize := n.Int64()
	if err != nil || errSize != nil || hidden < 1 || size < hidden || size%hidden != 0 {
		return fmt.Errorf("%w: %s.ssm.inner_size = %v: want a multiple of %v", ErrMetadata, architecture, Shown(inner),
			Shown(c["hidden_size"]))
	}
	c[expand] = size / hidden
	return nil
}

// SetChannels sets the biases and the width of the Mamba layers of a hybrid model.
func SetChannels(c map[string]any, architecture string, f File) error {
	c["mamba_conv_bias"] = AnyLayer(c, f, "ssm_conv1d.bias")
	c["mamba_proj_bias"] = AnyLayer(c, f, "ssm_in.bias")
	return SetExpand(c, architecture, f, "mamba_expand")
}
