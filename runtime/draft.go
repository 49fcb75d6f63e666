package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

// Draft configures speculative decoding for a request: a cheap draft proposes tokens, and the model verifies them in
// one step. This changes the speed of a response, not its contents: greedy requests generate the same tokens, others
// sample from the same distribution. The zero value chooses the number of drafts by measurement.
//
// Tokens are drafted by the image's draft model, or without one by n-gram lookup in the request's own text.
type Draft struct {
	Mode DraftMode `json:",omitempty"`
	N    int       `json:",omitempty"` // with DraftFixed: drafts in each step
}

// ParseDraft parses a number of drafts, "auto" or "off".
func ParseDraft(s string) (Draft, error) {
	switch s {
	case "auto":
		return Draft{}, nil
	case "off", "0":
		return Draft{Mode: DraftOff}, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > MaxDraft {
		return Draft{}, fmt.Errorf("%w: %q, want a number up to %d, auto or off", ErrDraft, s, MaxDraft)
	}
	return Draft{Mode: DraftFixed, N: n}, nil
}

// DraftMode says how the number of drafts is chosen.
type DraftMode string

// The modes.
const (
	DraftAuto  DraftMode = ""      // the number with the highest expected throughput
	DraftOff   DraftMode = "off"   // none
	DraftFixed DraftMode = "fixed" // N, or fewer at the end of the text or if the draft proposes fewer
)

// MaxDraft is the largest number of drafts in a step.
const MaxDraft = 16

// ErrDraft reports invalid draft settings.
var ErrDraft = errors.New("bad draft")

func (d Draft) check() error {
	switch {
	case d.Mode != DraftAuto && d.Mode != DraftOff && d.Mode != DraftFixed:
		return fmt.Errorf("%w: unknown mode %q", ErrDraft, d.Mode)
	case d.Mode == DraftFixed && (d.N < 1 || d.N > MaxDraft):
		return fmt.Errorf("%w: %d drafts in a step: must be between 1 and %d", ErrDraft, d.N, MaxDraft)
	}
	return nil
}

// DraftOptions configures the draft of a model. The zero value loads the image's draft model.
type DraftOptions struct {
	Off bool // do not load the draft model: requests draft by n-gram lookup only

	// Guess replaces all other drafts: it returns at most n tokens that may follow those of a request. It serves
	// callers that can predict the output, and benchmarks. It is called from one goroutine at a time and must not call
	// the engine.
	Guess func(tokens []int32, n int) []int32 `json:"-"`
}

// draftFiles holds an image's draft model: its configuration, nil if there is none, and its tensor blobs.
type draftFiles struct {
	config arch.Model
	blobs  []tensorBlob
}

// draft opens the image's draft model for the given target.
func (f files) draft(target arch.Model) (draftFiles, error) {
	if _, ok := f.image.Find(manifest.KindFile, blob.DraftConfig); !ok {
		if stray := f.tensorLayers(true); len(stray) > 0 {
			return draftFiles{}, fmt.Errorf("tensor %s belongs to a draft model, but %s is not in the image: %w",
				stray[0].Name, blob.DraftConfig, ErrImage)
		}
		return draftFiles{}, nil
	}
	config, err := f.configOf(blob.DraftConfig)
	if err != nil {
		return draftFiles{}, fmt.Errorf("%s: %w", blob.DraftConfig, err)
	}
	if err := arch.CheckDraft(target, config); err != nil {
		return draftFiles{}, err
	}
	blobs, err := f.openBlobs(config, true)
	if err != nil {
		return draftFiles{}, fmt.Errorf("the draft: %w", err)
	}
	return draftFiles{config, blobs}, nil
}

// probeDraftSteps is the number of tokens that a probe drafts.
const probeDraftSteps = 3

// ProbeDraft drafts a few tokens with the model's draft: the image's draft model, which it loads if needed, or draft
// layers in the model's own weights. Logits that are not finite are an error. It returns the number of drafted tokens;
// 0 if the model has no draft.
func (l *Local) ProbeDraft(ctx context.Context, store *store.Store, entry *store.Entry, o Options) (int, error) {
	var of draftFiles
	if l.draft == nil {
		var err error
		if of, err = (files{store, entry.Image}).draft(l.config); err != nil {
			return 0, fmt.Errorf("loading the draft of %s: %w", entry.Name, err)
		}
	}
	steps := 0
	err := l.do(ctx, func() error {
		draft := l.draft
		if draft == nil {
			var weights *nn.Weights
			var err error
			if draft, weights, err = l.buildDraft(ctx, of, o); err != nil || draft == nil {
				return err
			}
			if weights != nil {
				defer weights.Free()
			}
		}
		steps = probeDraftSteps
		return l.probeDraft(draft)
	})
	if err != nil {
		return 0, fmt.Errorf("the draft of %s: %w", entry.Name, err)
	}
	return steps, nil
}

// buildDraft builds the model's draft, which is nil if there is none. The returned weights are nil if the draft uses
// the target's. It runs on the engine's thread.
func (l *Local) buildDraft(ctx context.Context, of draftFiles, o Options) (models.Draft, *nn.Weights, error) {
	if of.config == nil {
		if m, ok := l.model.(models.Drafter); ok {
			return m.Draft(), nil, nil
		}
		return nil, nil, nil
	}
	weights, err := loadWeights(ctx, l.thread, of.blobs, o)
	if err != nil {
		return nil, nil, err
	}
	draft, err := models.BuildDraft(l.thread, of.config, l.config, weights)
	if err != nil {
		weights.Free()
		return nil, nil, err
	}
	return draft, weights, nil
}

// probeDraft evaluates a few tokens with the target and drafts tokens that follow them. It runs on the engine's thread.
func (l *Local) probeDraft(draft models.Draft) error {
	seq, own := cache.NewSequence(l.kinds), cache.NewSequence(draft.Layers())
	defer seq.Free()
	defer own.Free()
	tokens := l.probeTokens()
	hidden := l.model.Forward(nn.NewBatch(l.thread, nn.Part{Seq: seq, Tokens: tokens, All: true}))
	logits := l.model.Head(hidden)
	prompt := tokens[1:] // a draft with its own KV cache evaluates the prompt too
	if len(draft.Layers()) == 0 {
		prompt, hidden = nil, lastRow(hidden)
	}
	for step := range probeDraftSteps {
		next := int32(mlx.ArgMax(lastRow(logits), -1, false).Int())
		b := nn.NewBatch(l.thread, nn.Part{Seq: own, Tokens: append(slices.Clone(prompt), next)})
		hidden, logits = draft.Step(&models.DraftBatch{
			Batch: b, Target: []*cache.Sequence{seq}, Vectors: l.model.Embed(b.Tokens), Hidden: hidden,
		})
		prompt = nil
		for id, v := range logits.Float32s() {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return fmt.Errorf("the logit of token %d in step %d is %v: %w", id, step, v, ErrImage)
			}
		}
	}
	return nil
}

func lastRow(x *mlx.Array) *mlx.Array { return mlx.SliceAxis(x, 0, mlx.Range(x.Dim(0)-1, x.Dim(0))) }
