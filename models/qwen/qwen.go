// Package qwen runs model type "qwen": Llama with biases of queries, keys and values.
//
// Reference: transformers 5.23, models/qwen2/modeling_qwen2.py, and modeling_qwen.py beside the published checkpoints.
package qwen

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/prenorm"
)

func init() { models.Register("qwen", build) }

func build(t *mlx.Thread, c *arch.Qwen, w *nn.Weights) *nn.Decoder {
	return prenorm.Build(t, &c.Dense, w, prenorm.Options{})
}
