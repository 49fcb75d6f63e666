// Package longcat_flash runs model type "longcat_flash": decoder layers of two latent attentions and two MLPs. Experts
// read the input of the first MLP, and their output is added after the second. The router may choose experts that
// return their input.
//
// Reference: transformers 5.23, models/longcat_flash/modeling_longcat_flash.py. https://arxiv.org/abs/2509.01322
package longcat_flash

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/latent"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("longcat_flash", build) }

func build(t *mlx.Thread, c *types.LongcatFlash, w *nn.Weights) *models.Decoder {
	d := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{
		Norm: nn.NewRMSNorm(w, c.LastNorm(), c.Hidden, c.NormEps),
	})
	rope := nn.NewRope(t, w, c.Rope, c.Latent.RopeDim).Interleaved()
	for i := range c.Layers {
		name := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		s := &shortcut{experts: nn.NewMixture(w, name+"mlp", c.Hidden, c.Mixture)}
		half := func(j int) nn.Block {
			part := func(kind string) string { return fmt.Sprintf("%s%s.%d", name, kind, j) }
			return nn.Block{
				MixerNorm:   nn.NewRMSNorm(w, part("input_layernorm"), c.Hidden, c.NormEps),
				Mixer:       latent.NewAttention(w, part("self_attn"), 2*i+j, &c.LatentDecoder, rope),
				NetworkNorm: nn.NewRMSNorm(w, part("post_attention_layernorm"), c.Hidden, c.NormEps),
				Network:     nn.NewMLP(w, part("mlps"), c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation),
			}
		}
		first, second := half(0), half(1)
		first.Network = leaving{first.Network.(*nn.MLP), s}
		second.Mixer, second.Network = passing{second.Mixer, s}, joining{second.Network, s}
		d.Blocks = append(d.Blocks, first, second)
	}
	m := &models.Decoder{Decoder: d}
	m.Next = newNext(w, c, rope, m)
	return m
}

// newNext returns the multi-token prediction head, or nil if the checkpoint has none. Its layer has one attention and
// no experts. transformers ignores its tensors; vLLM's longcat_flash_mtp.py shows how they are used.
func newNext(w *nn.Weights, c *types.LongcatFlash, rope *nn.Rope, m *models.Decoder) *models.Next {
	p := c.Next() + "layers.0."
	if !w.Has(p + "eh_proj.weight") {
		return nil
	}
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	return &models.Next{
		Model:      m,
		VectorNorm: norm(p + "enorm.m"),
		StateNorm:  norm(p + "hnorm.m"),
		Join:       nn.NewLinear(w, p+"eh_proj", c.Hidden, 2*c.Hidden, false),
		Block: nn.Block{
			MixerNorm:   norm(p + "input_layernorm"),
			Mixer:       latent.NewAttention(w, p+"self_attn", 0, &c.LatentDecoder, rope),
			NetworkNorm: norm(p + "post_attention_layernorm"),
			Network:     nn.NewMLP(w, p+"transformer_layer.mlp", c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation),
		},
		Norm: norm(c.Next() + "norm"),
	}
}

// shortcut carries the output of a layer's experts past its second attention in a forward pass.
type shortcut struct {
	experts *nn.Mixture
	out     *mlx.Array
}

// leaving is the first MLP, beside which the experts read the same rows.
type leaving struct {
	mlp *nn.MLP
	*shortcut
}

// AddApply implements [nn.Network].
func (l leaving) AddApply(n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, x = n.AddApply(x, y)
	l.out = l.experts.Apply(x)
	return sum, l.mlp.Apply(x)
}

// passing is the second attention, after which the shortcut has the rows that it selects.
type passing struct {
	nn.Mixer
	*shortcut
}

// AddApply implements [nn.Mixer].
func (p passing) AddApply(b *nn.Batch, n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	p.out = b.Queried(p.out)
	return p.Mixer.AddApply(b, n, x, y)
}

// joining is the second MLP, to whose output the experts' is added.
type joining struct {
	nn.Network
	*shortcut
}

// AddApply implements [nn.Network].
func (j joining) AddApply(n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, out = j.Network.AddApply(n, x, y)
	out = mlx.Add(out, j.out)
	j.out = nil
	return sum, out
}
