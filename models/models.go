// Package models builds runnable models from configurations and weights.
//
// One package below this one per model_type; importing it registers it (package all imports every one). A model file
// reads top to bottom like the reference implementation: weights, then forward. Models run inside mlx.Thread.Do.
package models

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// ErrUnsupported says that a kind of model can be packed but not run.
var ErrUnsupported = errors.New("this model type cannot be run")

// Model runs forwards. Optional abilities are further interfaces.
type Model interface {
	// Layers says which state each layer keeps of a sequence.
	Layers() []cache.Kind
	// Embed gives the vectors [T, hidden] of tokens, int32 [T].
	Embed(tokens *mlx.Array) *mlx.Array
	// Forward gives the final hidden states [W, hidden], normalized, of the batch's W wanted rows, and advances the
	// caches of its sequences by all rows.
	Forward(b *nn.Batch) *mlx.Array
	// Head gives the scores [W, vocab] of hidden states.
	Head(hidden *mlx.Array) *mlx.Array
}

// Builder makes a model of one type from its parsed configuration. It takes every tensor that the configuration's table
// names; the caller asks w.Err afterwards.
type Builder func(t *mlx.Thread, config arch.Model, w *nn.Weights) Model

var builders = map[string]Builder{}

// Register adds a model type; packages of models do so in their init.
func Register(modelType string, b Builder) { builders[modelType] = b }

// Build makes a model. It runs inside mlx.Thread.Do. The weights are the caller's to free.
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

// Types lists the model types that run, sorted.
func Types() []string {
	var types []string
	for t := range builders {
		types = append(types, t)
	}
	slices.Sort(types)
	return types
}
