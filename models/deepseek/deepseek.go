// Package deepseek runs model type "deepseek": Llama with experts and shared experts.
//
// Reference: transformers 5.23, models/qwen2_moe/modeling_qwen2_moe.py, and
// modeling_deepseek.py beside the checkpoints.
package deepseek

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/prenorm"
)

func init() { models.Register("deepseek", build) }

func build(t *mlx.Thread, c *arch.Deepseek, w *nn.Weights) *nn.Decoder {
	return prenorm.Build(t, &c.Dense, w, prenorm.Options{
		Network: func(name string, i int) nn.Network {
			return nn.NewNetwork(w, name, c.Common, c.Intermediate, c.Mixture, c.Mixture.Sparse[i])
		},
	})
}
