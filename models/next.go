package models

import (
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// Next is a multi-token prediction head: a built-in draft that predicts the token after the next. It joins the vector
// of the next token with the hidden state that this token was chosen from, and has a layer with a KV cache of its own.
// Embedding and output head are the model's.
//
// Reference: transformers 5.23, MtpModel of modeling_layers.py.
type Next struct {
	Model                 Model
	VectorNorm, StateNorm *nn.Norm
	Join                  *nn.Linear // [hidden, 2*hidden]: the vector's channels first
	Block                 nn.Block   // layer 0 of its own caches
	Norm                  *nn.Norm
}

// Layers implements [Draft].
func (d *Next) Layers() []cache.Kind { return []cache.Kind{cache.Full} }

// Step implements [Draft].
func (d *Next) Step(b *DraftBatch) (hidden, logits *mlx.Array) {
	h := d.Join.Apply(mlx.Concatenate(1, d.VectorNorm.Apply(b.Vectors), d.StateNorm.Apply(b.Hidden)))
	h, y := d.Block.Apply(b.Ending(), h, nil)
	_, hidden = d.Norm.AddApply(h, y)
	return hidden, d.Model.Head(hidden)
}
