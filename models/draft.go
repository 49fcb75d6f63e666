package models

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// Draft proposes what its target will say next. Drafting some tokens is as many steps, each from what the one before
// gave; nothing in them waits for the device, so that a round can be one graph.
type Draft interface {
	// Layers says which state of its own each layer keeps of a sequence; it is empty where the target's is all that it
	// reads.
	Layers() []cache.Kind
	// Step gives, of the batch's W wanted rows, the scores [W, vocab] of the token after the row's, and the hidden states
	// [W, hidden of the target] that the next step starts from. It advances the draft's own sequences by all rows, and
	// only reads those of the target.
	Step(b *DraftBatch) (hidden, scores *mlx.Array)
}

// DraftBatch is the input of a step. A row stands for a token that was said but that the target need not have seen: the
// one that it chose last, then those that were drafted.
type DraftBatch struct {
	*nn.Batch                   // the tokens, their positions, and the draft's own sequences, which have no layers where it keeps nothing
	Target    []*cache.Sequence // the target's, one per segment: as it stood when it chose the first of the tokens
	Vectors   *mlx.Array        // [T, hidden of the target]: Model.Embed of the tokens
	Hidden    *mlx.Array        // [T, hidden of the target]: what Model.Forward gave, or Step, where the token was chosen
}

// Drafter is a [Model] with a draft of its own, in the same weights.
type Drafter interface {
	// Draft is nil where the checkpoint came without.
	Draft() Draft
}

// DraftBuilder makes a draft for a target. Like a Builder it takes every tensor of its configuration's table.
type DraftBuilder func(t *mlx.Thread, config, target arch.Model, w *nn.Weights) Draft

var draftBuilders = map[string]DraftBuilder{}

// RegisterDraft adds a model type that can only draft; packages of models do so in their init.
func RegisterDraft(modelType string, b DraftBuilder) { draftBuilders[modelType] = b }

// BuildDraft makes a draft for a target, which may be any model with the target's vocabulary. It runs inside
// mlx.Thread.Do. The weights are the caller's to free.
func BuildDraft(t *mlx.Thread, config, target arch.Model, w *nn.Weights) (Draft, error) {
	if err := arch.CheckDraft(target, config); err != nil {
		return nil, err
	}
	modelType := config.Facts().ModelType
	b, ok := draftBuilders[modelType]
	if !ok {
		m, err := Build(t, config, w)
		if err != nil {
			return nil, err
		}
		return whole{m}, nil
	}
	d := b(t, config, target, w)
	if err := w.Err(); err != nil {
		return nil, fmt.Errorf("building %s: %w", modelType, err)
	}
	return d, nil
}

// whole is a model that drafts: it reads the tokens alone, and so must have seen all of them.
type whole struct{ Model }

// Standalone reports whether a draft reads tokens alone: a step of it needs neither the target's sequences nor vectors or hidden states.
func Standalone(d Draft) bool {
	_, ok := d.(whole)
	return ok
}

// Step implements Draft.
func (d whole) Step(b *DraftBatch) (hidden, scores *mlx.Array) {
	hidden = d.Forward(b.Batch)
	return hidden, d.Head(hidden)
}
