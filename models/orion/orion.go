// Package orion runs model type "orion": Llama with LayerNorms.
//
// Reference: transformers 5.23, models/stablelm/modeling_stablelm.py, and modeling_orion.py beside the checkpoints.
package orion

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/prenorm"
)

func init() { models.Register("orion", build) }

func build(t *mlx.Thread, c *arch.Orion, w *nn.Weights) *nn.Decoder {
	return prenorm.Build(t, &c.Dense, w, prenorm.Options{LayerNorms: true})
}
