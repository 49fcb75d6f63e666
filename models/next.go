package models

import (
	"github.com/ingotml/ingot/arch/config"
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
	Window                int        // of the block's attention; 0 = all positions
	Norm                  *nn.Norm
}

// NewNext takes the tensors of a head whose names start with name, except its block's and those that m shares. last is
// the rest of the name of its last norm.
func NewNext(w *nn.Weights, name, last string, c config.Common, m Model, block nn.Block) *Next {
	norm := func(part string) *nn.Norm { return nn.NewRMSNorm(w, name+part, c.Hidden, c.NormEps) }
	return &Next{
		Model:      m,
		VectorNorm: norm("enorm"),
		StateNorm:  norm("hnorm"),
		Join:       nn.NewLinear(w, name+"eh_proj", c.Hidden, 2*c.Hidden, false),
		Block:      block,
		Norm:       norm(last),
	}
}

// Layers implements [Draft].
func (d *Next) Layers() []cache.Kind { return []cache.Kind{cache.Rotating(d.Window)} }

// Step implements [Draft].
func (d *Next) Step(b *DraftBatch) (hidden, logits *mlx.Array) {
	h := d.Join.Apply(mlx.Concatenate(1, d.VectorNorm.Apply(b.Vectors), d.StateNorm.Apply(b.Hidden)))
	h, y := d.Block.Apply(b.Ending(), h, nil)
	_, hidden = d.Norm.AddApply(h, y)
	return hidden, d.Model.Head(hidden)
}

// Decoder is a decoder whose checkpoint may have a multi-token prediction head.
type Decoder struct {
	*nn.Decoder
	Next *Next // nil if it has none
}

// Draft implements [Drafter].
func (m *Decoder) Draft() Draft {
	if m.Next == nil {
		return nil
	}
	return m.Next
}
