// Package minicpm3 runs model type "minicpm3": decoder layers of latent attention and a SwiGLU MLP, with scaled
// embeddings, residuals and logits.
//
// Reference: transformers 5.23, models/minicpm3/modeling_minicpm3.py.
package minicpm3

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/latent"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("minicpm3", build) }

func build(t *mlx.Thread, c *types.MiniCPM3, w *nn.Weights) *latent.Model {
	return latent.New(t, w, &c.LatentDecoder, latent.Options{
		Ends:  nn.DecoderOptions{EmbeddingScale: c.EmbeddingScale, LogitScale: c.LogitScale},
		Scale: c.ResidualScale,
	})
}
