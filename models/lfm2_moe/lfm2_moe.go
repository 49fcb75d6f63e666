// Package lfm2_moe runs model type "lfm2_moe": lfm2 with experts in all but the first layers.
//
// Reference: transformers 5.23, models/lfm2_moe/modeling_lfm2_moe.py.
package lfm2_moe

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/lfm2"
	"github.com/ingotml/ingot/models/nn"
)

func init() {
	models.Register("lfm2_moe", func(t *mlx.Thread, c *types.Lfm2Moe, w *nn.Weights) *nn.Decoder {
		return lfm2.New(t, &c.Lfm2, w, func(name string, layer int) nn.Network {
			return nn.NewNetwork(w, name, c.Common, c.Intermediate, c.Mixture, c.Mixture.Sparse[layer])
		})
	})
}
