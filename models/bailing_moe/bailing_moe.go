// Package bailing_moe runs model type "bailing_moe": Llama with experts and shared experts.
//
// Reference: transformers 5.23, models/qwen2_moe/modeling_qwen2_moe.py, and
// modeling_bailing_moe.py beside the checkpoints.
package bailing_moe

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/prenorm"
)

func init() { models.Register("bailing_moe", build) }

func build(t *mlx.Thread, c *arch.BailingMoe, w *nn.Weights) *nn.Decoder {
	return prenorm.Build(t, &c.Dense, w, prenorm.Options{
		Network: func(name string, i int) nn.Network {
			return nn.NewNetwork(w, name, c.Common, c.Intermediate, c.Mixture, c.Mixture.Sparse[i])
		},
	})
}
