// Package glm4_moe runs model type "glm4_moe": pre-norm decoder layers whose rope rotates a part of
// each head, with experts that a sigmoid router chooses, shared experts and dense first layers.
//
// Reference: transformers 5.23, models/glm4_moe/modeling_glm4_moe.py.
package glm4_moe

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/decoders"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("glm4_moe", build) }

func build(t *mlx.Thread, c *types.Glm4Moe, w *nn.Weights) *models.Decoder {
	d, b := decoders.BuildWith(t, c, w, decoders.Own{})
	m := &models.Decoder{Decoder: d}
	if p := c.Next(); c.HasNext() && w.Has(p+"eh_proj.weight") {
		next := b.Block(decoders.Layer{Prefix: p, Rope: b.FullRope, Experts: true})
		m.Next = models.NewNext(w, p, "shared_head.norm", c.Common, m, next)
	}
	return m
}
