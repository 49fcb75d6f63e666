// Package deepseek_v3 runs model type "deepseek_v3" (DeepSeek V3 and R1) and Kimi K2: decoder layers of latent
// attention and of experts that a sigmoid router chooses by groups, with shared experts and dense first layers. A
// checkpoint may have a multi-token prediction head.
//
// Reference: transformers 5.23, models/deepseek_v3/modeling_deepseek_v3.py.
package deepseek_v3

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/latent"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("deepseek_v3", build) }

func build(t *mlx.Thread, c *types.DeepseekV3, w *nn.Weights) *latent.Model {
	return latent.New(t, w, &c.LatentDecoder, latent.Options{})
}
