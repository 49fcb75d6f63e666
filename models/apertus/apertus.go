// Package apertus runs model type "apertus": pre-norm decoder layers with norms of query and key heads, and a plain
// MLP with the activation function xIELU (https://arxiv.org/abs/2411.13010).
//
// Reference: transformers 5.23, models/apertus/modeling_apertus.py.
package apertus

import (
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/decoders"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("apertus", build) }

func build(t *mlx.Thread, c *types.Apertus, w *nn.Weights) *nn.Decoder {
	return decoders.Build(t, c, w, decoders.Own{
		Network: func(b *decoders.Builder, l decoders.Layer) nn.Network {
			p := l.Prefix + "mlp."
			return nn.NewPlainMLP(w, p+b.Plain.Up, p+b.Plain.Down, c.Hidden, c.Intermediate, c.MLPBias, xielu(w, p+"act_fn."))
		},
	})
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
