// Package nemotron_nas runs model type "nemotron_nas": Llama with layers of different sizes, some without attention or
// without MLP.
//
// Reference: transformers 5.23, models/llama/modeling_llama.py, and modeling_decilm.py beside the checkpoints.
package nemotron_nas

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("nemotron_nas", build) }

func build(t *mlx.Thread, c *types.NemotronNAS, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix + "norm")})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, b := range c.Blocks {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		var block nn.Block
		if b.KVHeads > 0 {
			block.MixerNorm = norm(p + "input_layernorm")
			block.Mixer = nn.NewAttention(w, p+"self_attn", i, c.Attention(i), nn.AttentionOptions{Rope: rope})
		}
		if b.Intermediate > 0 {
			block.NetworkNorm = norm(p + "post_attention_layernorm")
			block.Network = nn.NewMLP(w, p+"mlp", c.Hidden, b.Intermediate, c.MLPBias, mlx.SiLUActivation)
		}
		m.Blocks = append(m.Blocks, block)
	}
	return m
}
