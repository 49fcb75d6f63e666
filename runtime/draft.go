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
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

// A draft lies in its target's image: its tensors' names start with draftPrefix, its configuration is draftConfig.
const (
	draftPrefix = "draft."
	draftConfig = "draft/config.json"
)

// Draft says how a request drafts: tokens that something cheaper than the model guesses, and that the model then judges in one step. It
// changes how fast an answer comes, never which one: of greedy requests not the tokens, of others not their distribution. The zero value
// lets measurements decide.
//
// What guesses is the draft that came with the model; without one, the text itself, where its last tokens were said before.
type Draft struct {
	Mode DraftMode `json:",omitempty"`
	N    int       `json:",omitempty"` // of DraftFixed: tokens in each step
}

// ParseDraft reads how to draft: a number of tokens, auto or off.
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

// DraftMode is how the number of drafted tokens is found.
type DraftMode string

// The modes.
const (
	DraftAuto  DraftMode = ""      // as many as pay
	DraftOff   DraftMode = "off"   // none
	DraftFixed DraftMode = "fixed" // always N, but for the end of the answer, and as far as something is guessed
)

// MaxDraft is the most tokens that are drafted in a step.
const MaxDraft = 16

// ErrDraft says that a request asks for drafts that there cannot be.
var ErrDraft = errors.New("bad draft")

func (d Draft) check() error {
	switch {
	case d.Mode != DraftAuto && d.Mode != DraftOff && d.Mode != DraftFixed:
		return fmt.Errorf("%w: %q is no mode", ErrDraft, d.Mode)
	case d.Mode == DraftFixed && (d.N < 1 || d.N > MaxDraft):
		return fmt.Errorf("%w: %d tokens in a step, from 1 to %d can be drafted", ErrDraft, d.N, MaxDraft)
	}
	return nil
}

// DraftOptions are what a model drafts with. The zero value loads the draft that came with it.
type DraftOptions struct {
	Off bool // load none: requests draft from their text alone

	// Guess drafts in place of all else: at most n tokens that follow those of a request. It is for callers who know what will be said, and
	// for measurements. It is called on one goroutine and must not call the engine.
	Guess func(tokens []int32, n int) []int32 `json:"-"`
}

// drafter is the draft of an image: its configuration, nil where there is none, and its tensors.
type draftFiles struct {
	config arch.Model
	blobs  []blob
}

// draft opens the draft that the image has for its model.
func (f files) draft(target arch.Model) (draftFiles, error) {
	if _, ok := f.image.Find(manifest.KindFile, draftConfig); !ok {
		if stray := f.tensorLayers(true); len(stray) > 0 {
			return draftFiles{}, fmt.Errorf("tensor %s belongs to a draft, and %s is not in the image: %w", stray[0].Name, draftConfig, ErrImage)
		}
		return draftFiles{}, nil
	}
	config, err := f.configOf(draftConfig)
	if err != nil {
		return draftFiles{}, fmt.Errorf("%s: %w", draftConfig, err)
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

// draftSteps is what a probe drafts.
const probeDraftSteps = 3

// ProbeDraft drafts a few tokens with the draft of the model's image, which it loads where the model runs without, or with the one that is
// in the model's own weights; scores that are not finite are an error. It gives the number of tokens, 0 where there is no draft.
func (l *Local) ProbeDraft(ctx context.Context, store *manifest.Store, entry *manifest.Entry, o Options) (int, error) {
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

// buildDraft runs on the engine's thread. The weights are nil where they are the model's own.
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

// tryDraft lets the model read a few tokens, and the draft go on. It runs on the engine's thread.
func (l *Local) probeDraft(draft models.Draft) error {
	seq, own := cache.NewSequence(l.kinds), cache.NewSequence(draft.Layers())
	defer seq.Free()
	defer own.Free()
	tokens := l.probeTokens()
	hidden := l.model.Forward(nn.NewBatch(l.thread, nn.Part{Seq: seq, Tokens: tokens, All: true}))
	logits := l.model.Head(hidden)
	said := tokens[1:] // a draft with state of its own reads the text too
	if len(draft.Layers()) == 0 {
		said, hidden = nil, lastRow(hidden)
	}
	for step := range probeDraftSteps {
		next := int32(mlx.ArgMax(lastRow(logits), -1, false).Int())
		b := nn.NewBatch(l.thread, nn.Part{Seq: own, Tokens: append(slices.Clone(said), next)})
		hidden, logits = draft.Step(&models.DraftBatch{
			Batch: b, Target: []*cache.Sequence{seq}, Vectors: l.model.Embed(b.Tokens), Hidden: hidden,
		})
		said = nil
		for id, v := range logits.Float32s() {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return fmt.Errorf("the score of token %d in step %d is %v: %w", id, step, v, ErrImage)
			}
		}
	}
	return nil
}

func lastRow(x *mlx.Array) *mlx.Array { return mlx.SliceAxis(x, 0, mlx.Range(x.Dim(0)-1, x.Dim(0))) }
