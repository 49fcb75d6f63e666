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
	Keys: []GGUFKey{
		{Key: "block_count", To: "num_hidden_layers"},
		{Key: "embedding_length", To: "hidden_size"},
		{Key: "attention.layer_norm_rms_epsilon", To: "layer_norm_epsilon"},
		{Key: "ssm.conv_kernel", To: "conv_kernel"},
		{Key: "ssm.state_size", To: "state_size"},
		{Key: "ssm.group_count", To: "n_groups"},
		{Key: "ssm.time_step_rank", To: "num_heads"},
	},
	Tensors: slices.Concat([]GGUFTensor{
		{Name: ggufEmbedding, To: "backbone.embeddings.weight"},
		{Name: "output_norm.weight", To: "backbone.norm_f.weight"},
		{Name: ggufHead, To: "lm_head.weight"},
	}, ggufUnder("backbone.layers.*.",
		append(ggufSSM("mixer"), ggufNames(GGUFOp{}, "attn_norm.weight", "norm.weight")...))),
	Adjust: func(c map[string]any, f GGUFFile) error {
		_, c["use_conv_bias"] = f.Shape("blk.0.ssm_conv1d.bias")
		_, c["use_bias"] = f.Shape("blk.0.ssm_in.bias")
		return ggufInner(c, "mamba2", f, "num_heads", "head_dim", "expand")
	},
}

// ggufSSM are the tensors of a Mamba 2 layer.
func ggufSSM(name string) []GGUFTensor {
	return slices.Concat(
		ggufLinears(GGUFOp{}, "ssm_in", name+".in_proj", "ssm_conv1d", name+".conv1d", "ssm_out", name+".out_proj"),
		ggufNames(GGUFOp{}, "ssm_dt.bias", name+".dt_bias", "ssm_d", name+".D", "ssm_norm.weight", name+".norm.weight"),
		ggufNames(logOf(GGUFOp{}), "ssm_a", name+".A_log"))
}

// ggufInner sets the size of a head, and how much wider than the model all heads together are, under the given keys.
func ggufInner(c map[string]any, architecture string, f GGUFFile, headsKey, dim, expand string) error {
	heads, err := number(c, headsKey)
	hidden, errHidden := number(c, "hidden_size")
	inner, _ := f.Value(architecture + ".ssm.inner_size")
	n, _ := inner.(json.Number)
	size, errSize := n.Int64()
	if err != nil || errHidden != nil || errSize != nil || heads < 1 || hidden < 1 || size%heads != 0 {
		return fmt.Errorf("%w: %s.ssm.inner_size = %v: want a multiple of the %v heads", ErrGGUF, architecture, inner,
			c[headsKey])
	}
	c[dim] = size / heads
	if size%hidden == 0 {
		c[expand] = size / hidden
	}
	return nil
}
