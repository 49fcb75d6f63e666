// Package baichuan runs model type "baichuan": Llama, whose head in Baichuan 2 has rows of length 1.
//
// Reference: transformers 5.23, models/llama/modeling_llama.py, and modeling_baichuan.py beside the checkpoints.
package baichuan

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/decoders"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("baichuan", build) }

func build(t *mlx.Thread, c *types.Baichuan, w *nn.Weights) *nn.Decoder {
	return decoders.Build(t, c, w, decoders.Own{
		Ends: func(o *nn.DecoderOptions) { o.UnitHead = c.UnitHead },
	})
}
