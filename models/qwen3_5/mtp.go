package qwen3_5

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

// newMTP returns the multi-token prediction head, or nil if the checkpoint has none that can be used. Several layers
// would be used in turn, each with the keys of its own rows. No published checkpoint has more than one.
//
// transformers does not implement it and ignores its tensors. This follows other inference engines and the authors'
// reports.
func newMTP(w *nn.Weights, c *types.Qwen35, rope *nn.Rope, m *Model, network NetworkBuilder) *models.Next {
	if c.MTP == 0 || !w.Has("mtp.fc.weight") {
		return nil
	}
	d := &models.Next{
		Model:      m,
		VectorNorm: newNorm(w, "mtp.pre_fc_norm_embedding", c),
		StateNorm:  newNorm(w, "mtp.pre_fc_norm_hidden", c),
		Join:       nn.NewLinear(w, "mtp.fc", c.Hidden, 2*c.Hidden, false),
		Norm:       newNorm(w, "mtp.norm", c),
	}
	for i := range c.MTP {
		p := fmt.Sprintf("mtp.layers.%d.", i)
		d.Block = newBlock(w, p, c, newAttention(w, p+"self_attn", 0, c, rope), network(p+"mlp", -1))
	}
	if c.MTP > 1 {
		return nil
	}
	return d
}

// Draft implements models.Drafter.
func (m *Model) Draft() models.Draft {
	if m.mtp == nil {
		return nil
	}
	return m.mtp
}
