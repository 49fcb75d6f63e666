// Package olmo_hybrid runs model type "olmo_hybrid": gated delta nets with norms before delta net and MLP, and
// attention with norms after attention and MLP, and of queries and keys over all heads.
//
// Reference: transformers 5.23, models/olmo_hybrid/modeling_olmo_hybrid.py.
package olmo_hybrid

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() { models.Register("olmo_hybrid", build) }

// outEps is the eps of the output norm of delta nets, which the configuration does not give.
const outEps = 1e-5

func build(t *mlx.Thread, c *types.OlmoHybrid, w *nn.Weights) *nn.Decoder {
	norm := func(name string, size int) *nn.Norm { return nn.NewRMSNorm(w, name, size, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.LastNorm(), c.Hidden)})
	var rope *nn.Rope
	if c.Rotates {
		rope = nn.NewRope(t, w, c.Rope, c.HeadDim)
	}
	for i, full := range c.Full {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		block := nn.Block{Network: nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation)}
		if full {
			block.Mixer = nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:       rope,
				QNorm:      norm(p+"self_attn.q_norm", c.Heads*c.HeadDim),
				KNorm:      norm(p+"self_attn.k_norm", c.KVHeads*c.HeadDim),
				WholeNorms: true,
			})
			block.MixerPost = norm(p+"post_attention_layernorm", c.Hidden)
			block.NetworkPost = norm(p+"post_feedforward_layernorm", c.Hidden)
		} else {
			block.MixerNorm = norm(p+"input_layernorm", c.Hidden)
			block.Mixer = recurrent.NewSplitGatedDelta(w, p+"linear_attn", i, c.Delta, c.Hidden, outEps)
			block.NetworkNorm = norm(p+"post_attention_layernorm", c.Hidden)
		}
		m.Blocks = append(m.Blocks, block)
	}
	return m
}
