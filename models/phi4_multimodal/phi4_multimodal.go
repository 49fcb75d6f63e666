// Package phi4_multimodal runs the text model of type "phi4_multimodal", whose layers are those of phi3.
//
// Reference: transformers 5.23, models/phi4_multimodal/modeling_phi4_multimodal.py.
package phi4_multimodal

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/phi3"
)

func init() { models.Register("phi4_multimodal", build) }

func build(t *mlx.Thread, c *arch.Phi4Multimodal, w *nn.Weights) *nn.Decoder {
	return phi3.Build(t, &c.Phi3, w)
}
