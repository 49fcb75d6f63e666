// Package glm4_moe_lite runs model type "glm4_moe_lite" (GLM-4.7-Flash): decoder layers of multi-head latent attention
// and of experts that a sigmoid router chooses, with shared experts for all tokens. A checkpoint may have a multi-token
// prediction head.
//
// Reference: transformers 5.23, models/glm4_moe_lite/modeling_glm4_moe_lite.py.
package glm4_moe_lite

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/latent"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("glm4_moe_lite", build) }

func build(t *mlx.Thread, c *types.Glm4MoeLite, w *nn.Weights) *latent.Model {
	return latent.New(t, w, &c.LatentDecoder, latent.Options{})
}
