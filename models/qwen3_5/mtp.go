package qwen3_5

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

// mtp is the multi-token prediction head. It predicts the token after the next from the vector of the next token and
// the hidden state that this token was chosen from. It has a full-attention layer with a KV cache of its own. Embedding
// and output head are the model's.
//
// transformers does not implement it and ignores its tensors. This follows other inference engines and the authors'
// reports.
type mtp struct {
	model                 *Model
	vectorNorm, stateNorm *nn.Norm
	join                  *nn.Linear // [hidden, 2*hidden]: the vector's channels first
	blocks                []nn.Block
	norm                  *nn.Norm
}

// newMTP returns nil if the checkpoint has no MTP head.
func newMTP(w *nn.Weights, c *arch.Qwen35, rope *nn.Rope, m *Model, network NetworkBuilder) *mtp {
	if c.MTP == 0 || !w.Has("mtp.fc.weight") {
		return nil
	}
	d := &mtp{
		model:      m,
		vectorNorm: newNorm(w, "mtp.pre_fc_norm_embedding", c),
		stateNorm:  newNorm(w, "mtp.pre_fc_norm_hidden", c),
		join:       nn.NewLinear(w, "mtp.fc", c.Hidden, 2*c.Hidden, false),
		norm:       newNorm(w, "mtp.norm", c),
	}
	for i := range c.MTP {
		p := fmt.Sprintf("mtp.layers.%d.", i)
		d.blocks = append(d.blocks, newBlock(w, p, c, newAttention(w, p+"self_attn", 0, c, rope), network(p+"mlp", -1)))
	}
	return d
}

// Draft implements models.Drafter.
func (m *Model) Draft() models.Draft {
	// Several layers would be used in turn, each with the keys of its own rows. No published checkpoint has more than one.
	if m.mtp == nil || len(m.mtp.blocks) != 1 {
		return nil
	}
	return m.mtp
}

// Layers implements models.Draft.
func (d *mtp) Layers() []cache.Kind { return []cache.Kind{cache.Full} }

// Step implements models.Draft.
func (d *mtp) Step(b *models.DraftBatch) (hidden, logits *mlx.Array) {
	h := d.join.Apply(mlx.Concatenate(1, d.vectorNorm.Apply(b.Vectors), d.stateNorm.Apply(b.Hidden)))
	h, y := d.blocks[0].Apply(b.Ending(), h, nil)
	_, hidden = d.norm.AddApply(h, y)
	return hidden, d.model.Head(hidden)
}
