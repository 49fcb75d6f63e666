// Package glm_moe_dsa runs model type "glm_moe_dsa" (GLM-5): decoder layers of latent attention over the
// positions that an indexer chooses, of the layer or of an earlier one, and of experts that a sigmoid router chooses.
//
// Reference: transformers 5.23, models/glm_moe_dsa/modeling_glm_moe_dsa.py.
package glm_moe_dsa

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/latent"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("glm_moe_dsa", build) }

func build(t *mlx.Thread, c *types.GlmMoeDsa, w *nn.Weights) *latent.Model {
	return latent.New(t, w, &c.LatentDecoder, latent.Options{})
}
