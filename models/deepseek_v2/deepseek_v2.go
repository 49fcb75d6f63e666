// Package deepseek_v2 runs model type "deepseek_v2" (DeepSeek V2, V2 Lite and V2.5): decoder layers of latent attention
// and of experts that a softmax router chooses, with shared experts and dense first layers.
//
// Reference: transformers 5.23, models/deepseek_v2/modeling_deepseek_v2.py.
package deepseek_v2

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/latent"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("deepseek_v2", build) }

func build(t *mlx.Thread, c *types.DeepseekV2, w *nn.Weights) *latent.Model {
	return latent.New(t, w, &c.LatentDecoder, latent.Options{})
}
