// Package nanochat runs model type "nanochat": pre-norm decoder layers whose norms have no weights, with an inverse
// rope, norms of query and key heads after it, and a plain MLP that squares the positive part.
//
// Reference: transformers 5.23, models/nanochat/modeling_nanochat.py.
package nanochat

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/decoders"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("nanochat", build) }

func build(t *mlx.Thread, c *types.NanoChat, w *nn.Weights) *nn.Decoder {
	return decoders.Build(t, c, w, decoders.Own{
		Ends: func(o *nn.DecoderOptions) { o.EmbeddingNorm = o.Norm },
		Rope: func(r *nn.Rope) *nn.Rope { return r.Inverse(w) },
	})
}
