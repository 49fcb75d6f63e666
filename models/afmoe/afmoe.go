// Package afmoe runs model type "afmoe": decoder layers with norms before and after gated attention and experts, and
// sliding layers between full ones without rope.
//
// Reference: transformers 5.23, models/afmoe/modeling_afmoe.py.
package afmoe

import (
	"fmt"
	"math"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("afmoe", build) }

func build(t *mlx.Thread, c *arch.Afmoe, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{
		Norm:           norm(c.Prefix + "norm"),
		EmbeddingScale: c.EmbeddingScale,
	})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		turn := rope
		if !c.Rotates(i) {
			turn = nil
		}
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm:   norm(p + "input_layernorm"),
			Mixer:       newAttention(w, p+"self_attn", i, c, turn, int(state.Window)),
			MixerPost:   norm(p + "post_attention_layernorm"),
			NetworkNorm: norm(p + "pre_mlp_layernorm"),
			Network:     nn.NewNetwork(w, p+"mlp", c.Common, c.Intermediate, c.Mixture, c.Mixture.Sparse[i]),
			NetworkPost: norm(p + "post_mlp_layernorm"),
		})
	}
	return m
}

// attention is grouped-query attention whose output is multiplied by the sigmoid of a gate.
type attention struct {
	layer            int
	q, k, v, o, gate *nn.Linear
	qNorm, kNorm     *nn.Norm
	rope             *nn.Rope // nil: queries and keys are not rotated
	options          nn.AttendOptions
}

func newAttention(w *nn.Weights, name string, layer int, c *arch.Afmoe, rope *nn.Rope, window int) *attention {
	heads := func(part string, n int, bias bool) *nn.Linear {
		return nn.NewLinear(w, name+part, n*c.HeadDim, c.Hidden, bias).Split(n)
	}
	return &attention{
		layer:   layer,
		q:       heads(".q_proj", c.Heads, c.AttentionBias),
		k:       heads(".k_proj", c.KVHeads, c.AttentionBias),
		v:       heads(".v_proj", c.KVHeads, c.AttentionBias),
		o:       nn.NewLinear(w, name+".o_proj", c.Hidden, c.Heads*c.HeadDim, c.OutputBias).Join(),
		gate:    heads(".gate_proj", c.Heads, false),
		qNorm:   nn.NewRMSNorm(w, name+".q_norm", c.HeadDim, c.NormEps),
		kNorm:   nn.NewRMSNorm(w, name+".k_norm", c.HeadDim, c.NormEps),
		rope:    rope,
		options: nn.AttendOptions{Scale: 1 / math.Sqrt(float64(c.HeadDim)), Window: window, Rope: rope},
	}
}

// AddApply implements nn.Mixer.
func (a *attention) AddApply(b *nn.Batch, n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, x = n.AddApply(x, y)
	gate := a.gate.Apply(b.Asked(x))
	qkv := nn.Queries(b, x, a.q, a.k, a.v)
	q, k := a.rope.ApplyNormed(b, a.qNorm, a.kNorm, qkv[0], qkv[1])
	attended := nn.Attend(b, a.layer, q, k, qkv[2], a.options)
	return b.Asked(sum), a.o.ApplyGated(mlx.SigmoidActivation, gate, attended)
}
