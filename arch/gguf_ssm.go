package arch

import (
	"encoding/json"
	"fmt"
	"slices"
)

// ggufMamba2 is the mapping of mamba2.
var ggufMamba2 = GGUF{
	Architecture: "mamba2",
	Config:       map[string]any{"model_type": "mamba2", "architectures": []string{"Mamba2ForCausalLM"}},
	Keys:         slices.Concat(ggufRecurrent, ggufSSMKeys("conv_kernel", "state_size", "n_groups", "num_heads")),
	Tensors:      slices.Concat(ggufBackbone(), ggufUnder("backbone.layers.*.", ggufSSM("mixer"))),
	Adjust: func(c map[string]any, f GGUFFile) error {
		_, c["use_conv_bias"] = f.Shape("blk.0.ssm_conv1d.bias")
		_, c["use_bias"] = f.Shape("blk.0.ssm_in.bias")
		return ggufInner(c, "mamba2", f, "num_heads", "head_dim", "expand")
	},
	Also:   alsoRecurrent,
	Refuse: refuseSSM,
}

// ggufMamba is the mapping of mamba. Files of falcon_mamba say that steps, B and C are normalized.
var ggufMamba = GGUF{
	Architecture: "mamba",
	Config:       map[string]any{"model_type": "mamba", "architectures": []string{"MambaForCausalLM"}},
	Keys:         slices.Concat(ggufRecurrent, ggufChannelKeys("conv_kernel", "state_size", "time_step_rank")),
	Tensors:      slices.Concat(ggufBackbone(), ggufUnder("backbone.layers.*.", ggufChannelSSM("mixer"))),
	Adjust: func(c map[string]any, f GGUFFile) error {
		if v, _ := f.Value("mamba.ssm.dt_b_c_rms"); v == true {
			return fmt.Errorf("mamba.ssm.dt_b_c_rms = true: %w: falcon_mamba", ErrUnknownArchitecture)
		}
		_, c["use_conv_bias"] = f.Shape("blk.0.ssm_conv1d.bias")
		_, c["use_bias"] = f.Shape("blk.0.ssm_in.bias")
		return ggufExpand(c, "mamba", f, "expand")
	},
	Also: alsoRecurrent,
	Refuse: func(m Model) string {
		if q, ok := m.(*Mamba); ok {
			return q.SSM.refuses(q.Hidden)
		}
		return ""
	},
}

// ggufRecurrent are the keys of models without attention and feed-forward blocks.
var ggufRecurrent = []GGUFKey{
	{Key: "block_count", To: "num_hidden_layers", Field: "Layers"},
	{Key: "embedding_length", To: "hidden_size", Field: "Hidden"},
	{Key: "attention.layer_norm_rms_epsilon", To: "layer_norm_epsilon", Field: "NormEps"},
}

// ggufBackbone are the tensors outside of layers of models that call them backbone, and the norms of layers.
func ggufBackbone() []GGUFTensor {
	return append([]GGUFTensor{
		{Name: ggufEmbedding, To: "backbone.embeddings.weight"},
		{Name: "output_norm.weight", To: "backbone.norm_f.weight"},
		{Name: ggufHead, To: "lm_head.weight"},
	}, ggufUnder("backbone.layers.*.", ggufNames(GGUFOp{}, "attn_norm.weight", "norm.weight"))...)
}

// alsoRecurrent are the keys that llama.cpp requires of models without attention.
func alsoRecurrent(m Model) []GGUFPair {
	pairs := []GGUFPair{{"context_length", endlessContext}, {"attention.head_count", 0}, {"feed_forward_length", 0}}
	switch q := m.(type) {
	case *Mamba:
		return append(pairs, GGUFPair{"ssm.inner_size", q.SSM.Width}, GGUFPair{"ssm.dt_b_c_rms", false})
	case *Mamba2:
		return append(pairs, GGUFPair{"ssm.inner_size", q.SSM.Width()})
	}
	return pairs
}

// ggufSSMKeys are the sizes of Mamba 2 layers, under the given keys of config.json.
func ggufSSMKeys(kernel, state, groups, heads string) []GGUFKey {
	return []GGUFKey{
		{Key: "ssm.conv_kernel", To: kernel, Field: "SSM.Kernel"},
		{Key: "ssm.state_size", To: state, Field: "SSM.State"},
		{Key: "ssm.group_count", To: groups, Field: "SSM.Groups"},
		{Key: "ssm.time_step_rank", To: heads, Field: "SSM.Heads"},
	}
}

// ggufHybridSSM are those of hybrid models.
var ggufHybridSSM = ggufSSMKeys("mamba_d_conv", "mamba_d_state", "mamba_n_groups", "mamba_n_heads")

// ggufSSM are the tensors of a Mamba 2 layer. The converter writes a column for each number of a head, and a row of the
// norm for each group.
func ggufSSM(name string) []GGUFTensor {
	column := func(_ Model, shape []int64) []int64 { return []int64{shape[0], 1} }
	list := slices.Concat(
		ggufLinears(GGUFOp{}, "ssm_in", name+".in_proj", "ssm_conv1d", name+".conv1d", "ssm_out", name+".out_proj"),
		ggufNames(GGUFOp{}, "ssm_dt.bias", name+".dt_bias", "ssm_d", name+".D", "ssm_norm.weight", name+".norm.weight"),
		ggufNames(logOf(GGUFOp{}), "ssm_a", name+".A_log"))
	for i := range list {
		switch list[i].Name {
		case "blk.*.ssm_a", "blk.*.ssm_d":
			list[i].Shape = column
		case "blk.*.ssm_norm.weight":
			list[i].Shape = func(m Model, shape []int64) []int64 {
				d, _ := fieldOf[SSM](m, "SSM")
				groups := int64(max(d.Groups, 1))
				return []int64{groups, shape[0] / groups}
			}
		}
	}
	return list
}

// refuseSSM says why llama.cpp cannot compute a model with Mamba 2 layers; "" = it can.
func refuseSSM(m Model) string {
	d, ok := fieldOf[SSM](m, "SSM")
	switch {
	case !ok:
	case !d.ConvBias:
		return "has biases of the convolutions of Mamba layers"
	case d.Bias || d.OutputBias:
		return "has no biases of the projections of Mamba layers"
	case d.Norm == NormBeforeGate:
		return "normalizes the output of Mamba layers behind the gate"
	}
	return ""
}

// ggufInner sets the size of a head, and how much wider than the model all heads together are, under the given keys.
func ggufInner(c map[string]any, architecture string, f GGUFFile, headsKey, dim, expand string) error {
	heads, err := number(c, headsKey)
	hidden, errHidden := number(c, "hidden_size")
	inner, _ := f.Value(architecture + ".ssm.inner_size")
	n, _ := inner.(json.Number)
	size, errSize := n.Int64()
	if err != nil || errHidden != nil || errSize != nil || heads < 1 || hidden < 1 || size%heads != 0 {
		return fmt.Errorf("%w: %s.ssm.inner_size = %v: want a multiple of the %v heads", ErrGGUF, architecture,
			shown(inner), shown(c[headsKey]))
	}
	c[dim] = size / heads
	if size%hidden == 0 {
		c[expand] = size / hidden
	}
	return nil
}

// ggufHybridBiases sets the biases of Mamba 2 layers of hybrid models, and the sizes of heads.
func ggufHybridBiases(c map[string]any, architecture string, f GGUFFile) error {
	c["mamba_conv_bias"] = ggufAny(c, f, "ssm_conv1d.bias")
	c["mamba_proj_bias"] = ggufAny(c, f, "ssm_in.bias")
	c["attention_bias"] = ggufAny(c, f, "attn_q.bias")
	return ggufInner(c, architecture, f, "mamba_n_heads", "mamba_d_head", "mamba_expand")
}

// ggufChannelKeys are the sizes of Mamba layers, under the given keys of config.json.
func ggufChannelKeys(kernel, state, rank string) []GGUFKey {
	return []GGUFKey{
		{Key: "ssm.conv_kernel", To: kernel, Field: "SSM.Kernel"},
		{Key: "ssm.state_size", To: state, Field: "SSM.State"},
		{Key: "ssm.time_step_rank", To: rank, Field: "SSM.Rank"},
	}
}

// ggufChannelSSM are the tensors of a Mamba layer.
func ggufChannelSSM(name string) []GGUFTensor {
	return slices.Concat(
		ggufLinears(GGUFOp{}, "ssm_in", name+".in_proj", "ssm_conv1d", name+".conv1d", "ssm_out", name+".out_proj",
			"ssm_x", name+".x_proj", "ssm_dt", name+".dt_proj"),
		ggufNames(GGUFOp{}, "ssm_d", name+".D", "ssm_dt_norm.weight", name+".dt_layernorm.weight",
			"ssm_b_norm.weight", name+".b_layernorm.weight", "ssm_c_norm.weight", name+".c_layernorm.weight"),
		ggufNames(logOf(GGUFOp{}), "ssm_a", name+".A_log"))
}

// refuses says why llama.cpp cannot compute such a layer; "" = it can.
func (d ChannelSSM) refuses(hidden int) string {
	switch {
	case d.Width != 2*hidden:
		return "has Mamba layers of twice the width of the model"
	case !d.ConvBias:
		return "has biases of the convolutions of Mamba layers"
	case d.Bias:
		return "has no biases of the projections of Mamba layers"
	}
	return ""
}

// ggufExpand sets how much wider than the model a Mamba layer is.
func ggufExpand(c map[string]any, architecture string, f GGUFFile, expand string) error {
	hidden, err := number(c, "hidden_size")
	inner, _ := f.Value(architecture + ".ssm.inner_size")
	n, _ := inner.(json.Number)
	size, errSize := n.Int64()
	if err != nil || errSize != nil || hidden < 1 || size < hidden || size%hidden != 0 {
		return fmt.Errorf("%w: %s.ssm.inner_size = %v: want a multiple of %v", ErrGGUF, architecture, shown(inner),
			shown(c["hidden_size"]))
	}
	c[expand] = size / hidden
	return nil
}

// adjustChannels sets the biases and the width of the Mamba layers of a hybrid model.
func adjustChannels(c map[string]any, architecture string, f GGUFFile) error {
	c["mamba_conv_bias"] = ggufAny(c, f, "ssm_conv1d.bias")
	c["mamba_proj_bias"] = ggufAny(c, f, "ssm_in.bias")
	return ggufExpand(c, architecture, f, "mamba_expand")
}
