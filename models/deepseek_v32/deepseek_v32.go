// Package deepseek_v32 runs model type "deepseek_v32" (DeepSeek V3.2): decoder layers of latent attention over
// the positions that an indexer chooses, and of experts that a sigmoid router chooses by groups.
//
// Reference: transformers 5.23, models/deepseek_v32/modeling_deepseek_v32.py.
package deepseek_v32

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/latent"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("deepseek_v32", build) }

func build(t *mlx.Thread, c *types.DeepseekV32, w *nn.Weights) *latent.Model {
	return latent.New(t, w, &c.LatentDecoder, latent.Options{})
}
