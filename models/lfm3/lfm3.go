// Package lfm3 runs model type "lfm3": layers of attention, full or in a window, or a gated short convolution, each
// with a SwiGLU MLP and norms around both. A gate of each head multiplies the attention's output.
//
// Reference: transformers 5.23, models/lfm3/modeling_lfm3.py.
package lfm3

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() { models.Register("lfm3", build) }

func build(t *mlx.Thread, c *types.Lfm3, w *nn.Weights) *nn.Decoder {
	norm := func(name string, size int) *nn.Norm { return nn.NewRMSNorm(w, name, size, c.NormEps) }
	post := func(name string) *nn.Norm {
		if !c.Sandwich {
			return nil
		}
		return norm(name, c.Hidden)
	}
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.LastNorm(), c.Hidden)})
	full, sliding := nn.NewRope(t, w, c.Rope, c.HeadDim), nn.NewRope(t, w, c.SlidingRope, c.HeadDim)
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		rope := full
		if state.Window > 0 {
			rope = sliding
		}
		var mixer nn.Mixer
		switch {
		case !c.Full[i]:
			mixer = recurrent.NewShortConv(w, p+"conv", i, c.Hidden, c.Taps, c.ConvBias)
		case c.Gate:
			mixer = nn.NewGatedAttention(w, p+"self_attn", i, c.Common, nn.GatedAttentionOptions{
				Gate: ".gate_proj", PerHead: true, Rope: rope, Window: int(state.Window),
			})
		default:
			mixer = nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:   rope,
				Window: int(state.Window),
				QNorm:  norm(p+"self_attn.q_norm", c.HeadDim),
				KNorm:  norm(p+"self_attn.k_norm", c.HeadDim),
			})
		}
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm:   norm(p+"operator_norm", c.Hidden),
			Mixer:       mixer,
			MixerPost:   post(p + "post_operator_norm"),
			NetworkNorm: norm(p+"ffn_norm", c.Hidden),
			Network:     nn.NewMLP(w, p+"feed_forward", c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation),
			NetworkPost: post(p + "post_ffn_norm"),
		})
	}
	return m
}
