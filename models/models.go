// Package models builds runnable models from configurations and weights.
//
// Package decoders registers the model types that are data, and package latent those with latent attention. Each other
// type has a package below this one, which reads top to bottom like the reference implementation: weights, then forward
// pass. Package all imports every one. Models run inside mlx.Thread.Do.
package models

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// ErrUnsupported means that a model type can be packed but not run.
var ErrUnsupported = errors.New("this model type cannot be run")

// Model runs forward passes. Optional capabilities are separate interfaces.
type Model interface {
	// Layers returns the kind of cache that each layer needs.
	Layers() []cache.Kind
	// Embed returns the embedding vectors [T, hidden] of tokens, int32 [T].
	Embed(tokens *mlx.Array) *mlx.Array
	// Forward returns the normalized final hidden states [W, hidden] of the W rows whose output is wanted, and advances
	// the caches of the batch's sequences by all rows.
	Forward(b *nn.Batch) *mlx.Array
	// Head returns the logits [W, vocab] of hidden states.
	Head(hidden *mlx.Array) *mlx.Array
}

// Forward returns the model's Forward of a batch of the parts. Nothing else of the forward pass is held, so evaluating
// the result frees each activation after its last use.
func Forward(t *mlx.Thread, m Model, parts ...nn.Part) *mlx.Array {
	return t.Result(func() *mlx.Array { return m.Forward(nn.NewBatch(t, parts...)) })
}

// Builder builds a model of one type from its parsed configuration. It takes every tensor of the configuration's tensor
// table. The caller checks w.Err afterwards.
type Builder[C arch.Model, M Model] func(t *mlx.Thread, config C, w *nn.Weights) M

var builders = map[string]Builder[arch.Model, Model]{}

// Register adds a model type, whose configuration arch parses to a C. Model packages call it in their init.
func Register[C arch.Model, M Model](modelType string, b Builder[C, M]) {
	builders[modelType] = func(t *mlx.Thread, config arch.Model, w *nn.Weights) Model { return b(t, config.(C), w) }
}

// Build builds a model. Call it inside mlx.Thread.Do. The caller frees the weights.
func Build(t *mlx.Thread, config arch.Model, w *nn.Weights) (Model, error) {
	modelType := config.Facts().ModelType
	b, ok := builders[modelType]
	if !ok {
		return nil, fmt.Errorf("%s: %w (known: %v)", modelType, ErrUnsupported, Types())
	}
	m := b(t, config, w)
	if err := w.Err(); err != nil {
		return nil, fmt.Errorf("building %s: %w", modelType, err)
	}
	return m, nil
}

// Types returns the model types that can be run, sorted.
func Types() []string { return slices.Sorted(maps.Keys(builders)) }
