// Package measure compares images of a store over a text: it loads them, and runs package verify.
//
// Contract: the logits of the base are kept in the store, by everything that they depend on, so that a base is loaded
// for its first comparison only. Otherwise both models are in memory at the same time.
package measure

import (
	"context"
	"slices"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/ingotml/ingot/runtime/scores"
	"github.com/ingotml/ingot/runtime/verify"
)

// Images compares images of a store.
type Images struct {
	Store   *store.Store
	Thread  *mlx.Thread
	Options runtime.Options
	// Check may refuse an image before it is loaded. It may be nil.
	Check func(*store.Entry) error
}

// WindowTokens returns how many tokens of a text a model reads at a time, at most.
func (m Images) WindowTokens() int { return verify.Window }

// Compare compares an image with a base over a text, without their drafts. progress may be nil.
func (m Images) Compare(
	ctx context.Context, entry, base *store.Entry, text string, progress func(done, total int),
) ([]quality.Row, error) {
	entry, err := m.ready(entry)
	if err != nil {
		return nil, err
	}
	if base, err = m.ready(base); err != nil {
		return nil, err
	}
	open := func(e *store.Entry) (*batch.Engine, error) { return batch.Open(ctx, m.Thread, m.Store, e, m.Options) }
	model, err := open(entry)
	if err != nil {
		return nil, err
	}
	defer model.Close()
	other, err := processor.Open(m.Store, base)
	if err != nil {
		return nil, err
	}
	key, err := scoresKey(ctx, m.Thread, base, m.Options)
	if err != nil {
		return nil, err
	}
	var loaded *batch.Engine
	defer func() {
		if loaded != nil {
			loaded.Close()
		}
	}()
	return verify.Against(ctx, model.Model(), verify.Base{
		Processor: other,
		Load: func(context.Context) (*load.Model, error) {
			if loaded, err = open(base); err != nil {
				return nil, err
			}
			return loaded.Model(), nil
		},
		Scores: scores.Cache{Dir: m.Store.Path(store.ScoresDir)},
		Key:    key,
	}, text, progress)
}

// MeanKL returns a function that measures the mean divergence of an image without a name from another one over a text.
// name is for messages.
func (m Images) MeanKL(
	name manifest.Name, text string,
) func(context.Context, manifest.Image, manifest.Image) (float64, error) {
	return func(ctx context.Context, img, plain manifest.Image) (float64, error) {
		rows, err := m.Compare(ctx, &store.Entry{Name: name, Image: img}, &store.Entry{Name: name, Image: plain}, text, nil)
		if err != nil {
			return 0, err
		}
		return quality.Summarize(rows).MeanKL.Value, nil
	}
}

// ready checks an image and returns it without its draft.
func (m Images) ready(e *store.Entry) (*store.Entry, error) {
	if err := m.Store.CheckPresent(e, false); err != nil {
		return nil, err
	}
	if m.Check != nil {
		if err := m.Check(e); err != nil {
			return nil, err
		}
	}
	alone := *e
	alone.Image.Layers = slices.DeleteFunc(slices.Clone(e.Image.Layers), manifest.Layer.Draft)
	return &alone, nil
}
