// Package internlm2 runs model type "internlm2": Llama with names of its own.
//
// Reference: transformers 5.23, models/llama/modeling_llama.py, and modeling_internlm2.py beside the checkpoints.
package internlm2

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/prenorm"
)

func init() { models.Register("internlm2", build) }

func build(t *mlx.Thread, c *arch.InternLM2, w *nn.Weights) *nn.Decoder {
	return prenorm.Build(t, &c.Dense, w, prenorm.Options{})
}
