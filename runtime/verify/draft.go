package verify

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/processor"
)

// probeDraftSteps is the number of tokens that a probe drafts.
const probeDraftSteps = 3

// ProbeDraft drafts a few tokens with the model's draft: the image's draft model, which it loads if needed, or draft
// layers in the model's own weights. Logits that are not finite are an error. It returns the number of drafted tokens;
// 0 if the model has no draft.
func ProbeDraft(
	ctx context.Context, m *load.Model, store *store.Store, entry *store.Entry, o runtime.Options,
) (int, error) {
	var of load.DraftFiles
	if m.Draft == nil {
		var err error
		if of, err = load.OpenDraft(processor.Files{Store: store, Image: entry.Image}, m.Processor.Config); err != nil {
			return 0, fmt.Errorf("loading the draft of %s: %w", entry.Name, err)
		}
	}
	steps := 0
	err := m.Do(ctx, func() error {
		draft := m.Draft
		if draft == nil {
			var weights *nn.Weights
			var err error
			if draft, weights, err = m.BuildDraft(ctx, of, o); err != nil || draft == nil {
				return err
			}
			if weights != nil {
				defer weights.Free()
			}
		}
		steps = probeDraftSteps
		return probeDraft(m, draft)
	})
	if err != nil {
		return 0, fmt.Errorf("the draft of %s: %w", entry.Name, err)
	}
	return steps, nil
}

// probeDraft evaluates a few tokens with the target and drafts tokens that follow them. It runs on the engine's thread.
func probeDraft(m *load.Model, draft models.Draft) error {
	seq, own := cache.NewSequence(m.Kinds), cache.NewSequence(draft.Layers())
	defer seq.Free()
	defer own.Free()
	tokens := probeTokens(m)
	hidden := models.Forward(m.Thread, m.Target, nn.Part{Seq: seq, Tokens: tokens, All: true})
	logits := m.Target.Head(hidden)
	prompt := tokens[1:] // a draft with its own KV cache evaluates the prompt too
	if len(draft.Layers()) == 0 {
		prompt, hidden = nil, lastRow(hidden)
	}
	for step := range probeDraftSteps {
		next := int32(mlx.ArgMax(lastRow(logits), -1, false).Int())
		b := nn.NewBatch(m.Thread, nn.Part{Seq: own, Tokens: append(slices.Clone(prompt), next)})
		hidden, logits = draft.Step(&models.DraftBatch{
			Batch: b, Target: []*cache.Sequence{seq}, Vectors: m.Target.Embed(b.Tokens), Hidden: hidden,
		})
		prompt = nil
		for id, v := range logits.Float32s() {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return fmt.Errorf("the logit of token %d in step %d is %v: %w", id, step, v, runtime.ErrImage)
			}
		}
	}
	return nil
}

func lastRow(x *mlx.Array) *mlx.Array { return mlx.SliceAxis(x, 0, mlx.Range(x.Dim(0)-1, x.Dim(0))) }
