// Package apertus runs model type "apertus": pre-norm decoder layers with norms of query and key heads, and a plain
// MLP with the activation function xIELU (https://arxiv.org/abs/2411.13010).
//
// Reference: transformers 5.23, models/apertus/modeling_apertus.py.
package apertus

import (
	"fmt"
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("apertus", build) }

func build(t *mlx.Thread, c *types.Apertus, w *nn.Weights) *nn.Decoder {
	norm := func(name string, size int) *nn.Norm { return nn.NewRMSNorm(w, name, size, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix+"norm", c.Hidden)})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm(p+"attention_layernorm", c.Hidden),
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:   rope,
				Window: int(state.Window),
				QNorm:  norm(p+"self_attn.q_norm", c.HeadDim),
				KNorm:  norm(p+"self_attn.k_norm", c.HeadDim),
			}),
			NetworkNorm: norm(p+"feedforward_layernorm", c.Hidden),
			Network: nn.NewPlainMLP(
				w, p+"mlp.up_proj", p+"mlp.down_proj", c.Hidden, c.Intermediate, c.MLPBias, xielu(w, p+"mlp.act_fn.")),
		})
	}
	return m
}

// xielu returns the activation function of a layer: alpha_p x^2 + beta x for positive x, otherwise
// alpha_n (e^min(x, eps) - 1 - x) + beta x. The alphas are stored before softplus.
func xielu(w *nn.Weights, name string) func(*mlx.Array) *mlx.Array {
	value := func(part string) float64 {
		if a := w.Take(name+part, 1); a != nil {
			return float64(mlx.AsType(a, mlx.Float32).Float32s()[0])
		}
		return 0
	}
	softplus := func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
	beta, eps := value("beta"), value("eps")
	positive, negative := softplus(value("alpha_p")), beta+softplus(value("alpha_n"))
	return func(x *mlx.Array) *mlx.Array {
		curved := mlx.Add(mlx.MultiplyScalar(mlx.ReLU2(x), positive), mlx.MultiplyScalar(mlx.ExpTail(x, eps), negative))
		return mlx.Add(curved, mlx.MultiplyScalar(x, beta))
	}
}
