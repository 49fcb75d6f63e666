package models

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// Draft proposes tokens that its target is likely to generate. Drafting n tokens takes n steps; each starts from the
// results of the previous step and none waits for the device, so that a round can be one graph.
type Draft interface {
	// Layers returns the caches that the draft itself needs, one per layer. It is empty if the draft reads only the
	// target's caches.
	Layers() []cache.Kind
	// Step returns, for the W rows of the batch whose output is wanted, the logits [W, vocab] of the token that follows
	// the row's token, and the hidden states [W, hidden of the target] that the next step starts from. It advances the
	// draft's own sequences by all rows and does not write to the target's.
	Step(b *DraftBatch) (hidden, logits *mlx.Array)
}

// DraftBatch is the input of a step. Each row is a token that the target may not have processed yet: the token that it
// chose last, or a drafted one.
type DraftBatch struct {
	*nn.Batch                   // tokens, positions and the draft's own sequences, without layers if it has no caches
	Target    []*cache.Sequence // the target's sequence of each segment, as of when it chose the first of the tokens
	Vectors   *mlx.Array        // [T, hidden of the target]: Model.Embed of the tokens
	Hidden    *mlx.Array        // [T, hidden of the target]: the result of Forward or Step that each token was chosen from
}

// Drafter is a [Model] with a built-in draft, such as a multi-token prediction head.
type Drafter interface {
	// Draft returns nil if the checkpoint has no draft.
	Draft() Draft
}

// DraftBuilder builds a draft for a target. Like a Builder it takes every tensor of its configuration's tensor table.
type DraftBuilder[C, T arch.Model, D Draft] func(t *mlx.Thread, config C, target T, w *nn.Weights) D

var draftBuilders = map[string]DraftBuilder[arch.Model, arch.Model, Draft]{}

// RegisterDraft adds a model type that can only draft, for targets whose configuration is a T; arch.CheckDraft admits
// no others. Model packages call it in their init.
func RegisterDraft[C, T arch.Model, D Draft](modelType string, b DraftBuilder[C, T, D]) {
	draftBuilders[modelType] = func(t *mlx.Thread, config, target arch.Model, w *nn.Weights) Draft {
		return b(t, config.(C), target.(T), w)
	}
}

// DraftTypes returns the model types that can only draft, sorted.
func DraftTypes() []string { return slices.Sorted(maps.Keys(draftBuilders)) }

// BuildDraft builds a draft for a target. A regular model can draft for any target with the same vocabulary. Call it
// inside mlx.Thread.Do. The caller frees the weights.
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
		return standalone{m}, nil
	}
	d := b(t, config, target, w)
	if err := w.Err(); err != nil {
		return nil, fmt.Errorf("building %s: %w", modelType, err)
	}
	return d, nil
}

// standalone is a regular model used as a draft. It reads only tokens, so it must process all of them.
type standalone struct{ Model }

// Standalone reports whether a draft reads only tokens: its steps need neither the target's sequences nor vectors or
// hidden states.
func Standalone(d Draft) bool {
	_, ok := d.(standalone)
	return ok
}

// Step implements Draft.
func (d standalone) Step(b *DraftBatch) (hidden, logits *mlx.Array) {
	hidden = d.Forward(b.Batch)
	return hidden, d.Head(hidden)
}
