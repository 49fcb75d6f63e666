// Package youtu runs model type "youtu" (Youtu-LLM): decoder layers of latent attention and a SwiGLU MLP.
//
// Reference: transformers 5.23, models/youtu/modeling_youtu.py.
package youtu

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/latent"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("youtu", build) }

func build(t *mlx.Thread, c *types.Youtu, w *nn.Weights) *latent.Model {
	return latent.New(t, w, &c.LatentDecoder, latent.Options{})
}
