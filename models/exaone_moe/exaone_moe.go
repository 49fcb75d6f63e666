// Package exaone_moe runs model type "exaone_moe": pre-norm decoder layers with norms of queries and
// keys, sliding layers between full ones without rope, and experts that a sigmoid router chooses.
//
// Reference: transformers 5.23, models/exaone_moe/modeling_exaone_moe.py.
package exaone_moe

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/decoders"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("exaone_moe", build) }

func build(t *mlx.Thread, c *types.ExaoneMoe, w *nn.Weights) *models.Decoder {
	d, b := decoders.BuildWith(t, c, w, decoders.Own{})
	m := &models.Decoder{Decoder: d}
	m.Next = newNext(w, c, b, m)
	return m
}

// newNext returns the multi-token prediction head, or nil if the checkpoint has none. transformers does not implement
// it and ignores its tensors. This follows the publisher's code for other inference engines.
func newNext(w *nn.Weights, c *types.ExaoneMoe, b *decoders.Builder, m *models.Decoder) *models.Next {
	if !c.HasNext() || !w.Has("mtp.fc.weight") {
		return nil
	}
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, "mtp."+name, c.Hidden, c.NormEps) }
	layer := decoders.Layer{Prefix: "mtp.layers.0.", Window: c.NextWindow}
	if c.Window == 0 || c.NextWindow > 0 {
		layer.Rope = b.FullRope
	}
	return &models.Next{
		Model:      m,
		VectorNorm: norm("pre_fc_norm_embedding"),
		StateNorm:  norm("pre_fc_norm_hidden"),
		Join:       nn.NewLinear(w, "mtp.fc", c.Hidden, 2*c.Hidden, false),
		Block:      b.Block(layer),
		Window:     c.NextWindow,
		Norm:       norm("norm"),
	}
}
