package load

import (
	"context"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/processor"
)

// DraftFiles holds an image's draft model: its configuration, nil if there is none, and its tensor blobs.
type DraftFiles struct {
	config arch.Model
	blobs  []tensorBlob
}

// readsTarget reports whether the draft reads the target's keys and values.
func (d DraftFiles) readsTarget() bool {
	return slices.Contains(models.DraftTypes(), d.config.Facts().ModelType)
}

// OpenDraft opens the image's draft model for the given target.
func OpenDraft(f processor.Files, target arch.Model) (DraftFiles, error) {
	if _, ok := f.Image.Find(manifest.KindFile, blob.DraftConfig); !ok {
		if stray := tensorLayers(f.Image, true); len(stray) > 0 {
			return DraftFiles{}, fmt.Errorf("tensor %s belongs to a draft model, but %s is not in the image: %w",
				stray[0].Name, blob.DraftConfig, runtime.ErrImage)
		}
		return DraftFiles{}, nil
	}
	config, err := f.ConfigOf(blob.DraftConfig)
	if err != nil {
		return DraftFiles{}, fmt.Errorf("%s: %w", blob.DraftConfig, err)
	}
	if err := arch.CheckDraft(target, config); err != nil {
		return DraftFiles{}, err
	}
	blobs, err := openBlobs(f, config, true)
	if err != nil {
		return DraftFiles{}, fmt.Errorf("the draft: %w", err)
	}
	return DraftFiles{config, blobs}, nil
}

// BuildDraft builds the model's draft, which is nil if there is none. The returned weights are nil if the draft uses
// the target's. It runs on the engine's thread.
func (m *Model) BuildDraft(ctx context.Context, of DraftFiles, o runtime.Options) (models.Draft, *nn.Weights, error) {
	if of.config == nil {
		if d, ok := m.Target.(models.Drafter); ok {
			return d.Draft(), nil, nil
		}
		return nil, nil, nil
	}
	weights, err := loadWeights(ctx, m.Thread, of.config, of.blobs, nil, o)
	if err != nil {
		return nil, nil, err
	}
	draft, err := models.BuildDraft(m.Thread, of.config, m.Processor.Config, weights)
	if err != nil {
		weights.Free()
		return nil, nil, err
	}
	return draft, weights, nil
}
