// Package minicpm runs model type "minicpm": Llama with scaled embeddings, residuals and logits, and experts.
//
// Reference: transformers 5.23, models/granite/modeling_granite.py, and modeling_minicpm.py beside the checkpoints.
package minicpm

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/prenorm"
)

func init() { models.Register("minicpm", build) }

func build(t *mlx.Thread, c *arch.MiniCPM, w *nn.Weights) *nn.Decoder {
	return prenorm.Build(t, &c.Dense, w, prenorm.Options{
		Ends:  nn.DecoderOptions{EmbeddingScale: c.EmbeddingScale, LogitScale: c.LogitScale},
		Scale: c.ResidualScale,
		Network: func(name string, _ int) nn.Network {
			return nn.NewNetwork(w, name, c.Common, c.Intermediate, c.Mixture, c.Mixture.Experts.Count > 0)
		},
	})
}
