// Package qwen3_5_moe runs model type "qwen3_5_moe" and its predecessor "qwen3_next": qwen3_5 with routed experts
// instead of the MLP, and a shared expert for all rows.
//
// Reference: transformers 5.23, models/qwen3_5_moe/modeling_qwen3_5_moe.py.
package qwen3_5_moe

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/qwen3_5"
)

func init() { models.Register("qwen3_5_moe", build) }

func build(t *mlx.Thread, c *types.Qwen35Moe, w *nn.Weights) *qwen3_5.Model {
	return qwen3_5.New(t, &c.Qwen35, w, func(name string, layer int) nn.Network {
		if c.HasExperts(layer) {
			return nn.NewMixture(w, name, c.Hidden, c.Mixture())
		}
		return nn.NewMLP(w, name, c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation)
	})
}
