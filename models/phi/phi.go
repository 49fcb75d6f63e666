// Package phi runs model type "phi": LayerNorms, a partial rope, and a plain MLP that reads the same norm as attention.
//
// Reference: transformers 5.23, models/phi/modeling_phi.py.
package phi

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/prenorm"
)

func init() { models.Register("phi", build) }

func build(t *mlx.Thread, c *arch.Phi, w *nn.Weights) *nn.Decoder {
	return prenorm.Build(t, &c.Dense, w, prenorm.Options{
		Ends:       nn.DecoderOptions{HeadBias: true},
		LayerNorms: true,
		HeadNorms:  c.QKNorm,
		Parallel:   true,
		OneNorm:    true,
		Plain:      true,
	})
}
