// Package mistral4 runs model type "mistral4" (Mistral Small 4, text): decoder layers of latent
// attention, whose queries grow with their position, and of experts that a softmax router chooses by groups.
//
// Reference: transformers 5.23, models/mistral4/modeling_mistral4.py.
package mistral4

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/latent"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("mistral4", build) }

func build(t *mlx.Thread, c *types.Mistral4, w *nn.Weights) *latent.Model {
	return latent.New(t, w, &c.LatentDecoder, latent.Options{})
}
