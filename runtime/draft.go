package runtime

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

// A draft lies in its target's image: its tensors' names start with draftPrefix, its configuration is draftConfig.
const (
	draftPrefix = "draft."
	draftConfig = "draft/config.json"
)

// draft opens the draft that the image has for its model; its configuration is nil where there is none.
func (f files) draft(target arch.Model) (arch.Model, []blob, error) {
	if _, ok := f.image.Find(manifest.KindFile, draftConfig); !ok {
		if stray := f.tensorLayers(true); len(stray) > 0 {
			return nil, nil, fmt.Errorf("tensor %s belongs to a draft, and %s is not in the image: %w", stray[0].Name, draftConfig, ErrImage)
		}
		return nil, nil, nil
	}
	config, err := f.configOf(draftConfig)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", draftConfig, err)
	}
	if err := arch.CheckDraft(target, config); err != nil {
		return nil, nil, err
	}
	blobs, err := f.openBlobs(config, true)
	if err != nil {
		return nil, nil, fmt.Errorf("the draft: %w", err)
	}
	return config, blobs, nil
}

// draftSteps is what a probe drafts.
const draftSteps = 3

// ProbeDraft loads the draft of the model's image, or takes the one that is in the model's own weights, and drafts a few
// tokens; scores that are not finite are an error. It gives the number of tokens, 0 where there is no draft.
func (l *Local) ProbeDraft(ctx context.Context, store *manifest.Store, entry *manifest.Entry, o Options) (int, error) {
	config, blobs, err := files{store, entry.Image}.draft(l.config)
	if err != nil {
		return 0, fmt.Errorf("loading the draft of %s: %w", entry.Name, err)
	}
	steps := 0
	err = l.do(ctx, func() error {
		draft, weights, err := l.buildDraft(ctx, config, blobs, o)
		if err != nil || draft == nil {
			return err
		}
		if weights != nil {
			defer weights.Free()
		}
		steps = draftSteps
		return l.tryDraft(draft)
	})
	if err != nil {
		return 0, fmt.Errorf("the draft of %s: %w", entry.Name, err)
	}
	return steps, nil
}

// buildDraft runs on the engine's thread. The weights are nil where they are the model's own.
func (l *Local) buildDraft(ctx context.Context, config arch.Model, blobs []blob, o Options) (models.Draft, *nn.Weights, error) {
	if config == nil {
		if m, ok := l.model.(models.Drafter); ok {
			return m.Draft(), nil, nil
		}
		return nil, nil, nil
	}
	weights, err := loadWeights(ctx, l.thread, blobs, o)
	if err != nil {
		return nil, nil, err
	}
	draft, err := models.BuildDraft(l.thread, config, l.config, weights)
	if err != nil {
		weights.Free()
		return nil, nil, err
	}
	return draft, weights, nil
}

// tryDraft lets the model read a few tokens, and the draft go on. It runs on the engine's thread.
func (l *Local) tryDraft(draft models.Draft) error {
	seq, own := cache.NewSequence(l.model.Layers()), cache.NewSequence(draft.Layers())
	defer seq.Free()
	defer own.Free()
	tokens := l.probeTokens()
	hidden := l.model.Forward(nn.NewBatch(l.thread, nn.Part{Seq: seq, Tokens: tokens, All: true}))
	scores := l.model.Head(hidden)
	said := tokens[1:] // a draft with state of its own reads the text too
	if len(draft.Layers()) == 0 {
		said, hidden = nil, lastRow(hidden)
	}
	for step := range draftSteps {
		next := int32(mlx.ArgMax(lastRow(scores), -1, false).Int())
		b := nn.NewBatch(l.thread, nn.Part{Seq: own, Tokens: append(slices.Clone(said), next)})
		hidden, scores = draft.Step(&models.DraftBatch{
			Batch: b, Target: []*cache.Sequence{seq}, Vectors: l.model.Embed(b.Tokens), Hidden: hidden,
		})
		said = nil
		for id, v := range scores.Float32s() {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return fmt.Errorf("the score of token %d in step %d is %v: %w", id, step, v, ErrImage)
			}
		}
	}
	return nil
}

func lastRow(x *mlx.Array) *mlx.Array { return mlx.SliceAxis(x, 0, mlx.Range(x.Dim(0)-1, x.Dim(0))) }
