// Package exaone runs model type "exaone": Llama with names of its own.
//
// Reference: transformers 5.23, models/llama/modeling_llama.py, and modeling_exaone.py beside the checkpoints.
package exaone

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/prenorm"
)

func init() { models.Register("exaone", build) }

func build(t *mlx.Thread, c *arch.Exaone, w *nn.Weights) *nn.Decoder {
	return prenorm.Build(t, &c.Dense, w, prenorm.Options{})
}
