package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	_ "github.com/ingotml/ingot/models/all" // registers every model type
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/shard"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pictures"
	"github.com/ingotml/ingot/runtime/processor"
)

// Model is a model in the engine's memory. Its fields do not change.
type Model struct {
	Processor *processor.Processor
	Thread    *mlx.Thread
	Target    models.Model
	Kinds     []cache.Kind // of the target's layers, with the options' type of keys and values
	Weights   *nn.Weights
	Widest    int64 // rows of the widest weight matrix, except for those of the vocabulary
	Pictures  *pictures.Encoder

	Draft        models.Draft // nil if there is none
	draftWeights *nn.Weights  // nil if the draft uses the target's weights
	Ranks        *mlx.Group   // nil: the model is on this rank alone
	Stages       shard.Stages // layers of the ranks of a pipeline; nil: there is none

	mu      sync.RWMutex // held for reading while the model is in use
	closed  bool
	closing atomic.Bool // Close is waiting for the model to be unused
}

// ErrClosed reports the use of a model after Close.
var ErrClosed = errors.New("the model was closed")

// Open maps a model's weights and builds the model. The thread must outlive it. read returns the model's processor.
func Open(
	ctx context.Context, t *mlx.Thread, f processor.Files, read func() (*processor.Processor, error), o runtime.Options,
) (*Model, error) {
	return OpenRank(ctx, t, nil, f, read, o)
}

// OpenRank is Open for a rank of a group, on the group's thread: it maps only what the rank has of each tensor, or with
// o.Stages the tensors of its layers. All ranks must run the same forward passes in the same order. Without a group it
// is Open. A draft with a checkpoint of its own is on rank 0 alone. If it reads the target's keys and values, which are
// divided, there is none.
func OpenRank(
	ctx context.Context, t *mlx.Thread, ranks *mlx.Group, f processor.Files,
	read func() (*processor.Processor, error), o runtime.Options,
) (*Model, error) {
	o.Begin("tokenizer")
	p, err := read()
	if err != nil {
		return nil, err
	}
	o.Begin("weights")
	blobs, err := openBlobs(f, p.Config, false)
	if err != nil {
		return nil, runtime.OfImage(err)
	}
	var draft DraftFiles
	if rank := 0; !o.Draft.Off {
		if ranks != nil {
			rank = ranks.Rank()
		}
		draft, err = OpenDraft(f, p.Config)
		switch {
		case errors.Is(err, manifest.ErrBlobMissing):
			draft = DraftFiles{} // the image was pulled without its draft
		case err != nil:
			return nil, runtime.OfImage(err)
		case draft.config != nil && (rank > 0 || ranks != nil && draft.readsTarget()):
			draft, o.Draft.Off = DraftFiles{}, true
		}
	}
	parts := map[string]shard.Part{}
	if ranks != nil {
		if parts, err = shard.Divide(p.Config, o.Stages, ranks.Rank(), ranks.Size()); err != nil {
			return nil, err
		}
	}
	m := &Model{Processor: p, Thread: t, Widest: widest(p.Config.Facts(), blobs), Ranks: ranks, Stages: o.Stages}
	if err := t.Do(ctx, func() error { return m.build(ctx, blobs, ranks, parts, draft, o) }); err != nil {
		return nil, err
	}
	return m, nil
}

// build builds the model on the engine's thread. If it fails, it frees all arrays.
func (m *Model) build(
	ctx context.Context, blobs []tensorBlob, ranks *mlx.Group, parts map[string]shard.Part, draft DraftFiles,
	o runtime.Options,
) error {
	weights, err := loadWeights(ctx, m.Thread, m.Processor.Config, blobs, parts, o)
	if err != nil {
		return err
	}
	if absent := shard.Absent(parts); o.Stages != nil {
		weights.Staged(ranks, o.Stages, absent)
	} else {
		weights.Over(ranks, absent)
	}
	built := false
	defer func() {
		if !built { // failed or panicked
			weights.Free()
			if m.draftWeights != nil {
				m.draftWeights.Free()
			}
		}
	}()
	target, err := models.Build(m.Thread, m.Processor.Config, weights)
	if errors.Is(err, models.ErrUnsupported) || errors.Is(err, nn.ErrWeights) {
		err = runtime.OfImage(err)
	}
	if err == nil {
		m.Kinds, err = kinds(o.KV, target.Layers())
	}
	if err != nil {
		return err
	}
	m.Target, m.Weights = target, weights
	if !o.Draft.Off {
		if m.Draft, m.draftWeights, err = m.BuildDraft(ctx, draft, o); err != nil {
			return fmt.Errorf("the draft: %w", err)
		}
	}
	m.Pictures = pictures.New(m.Processor, m.Thread, target)
	built = true
	return nil
}

// kinds returns the kinds of a model's layers, with keys and values of the given type.
func kinds(t runtime.KVType, all []cache.Kind) ([]cache.Kind, error) {
	bits := t.Bits()
	if bits == 0 && t != runtime.KVPlain {
		return nil, fmt.Errorf("unknown KV cache type %q", t)
	}
	return cache.Packed(all, int(bits)), nil
}

// DraftsTogether reports whether all ranks compute the model's draft, because it uses the target's weights and these
// are divided. Any other draft runs on rank 0 alone.
func (m *Model) DraftsTogether() bool {
	return m.Ranks != nil && m.Stages == nil && m.Draft != nil && m.draftWeights == nil
}

// StateShape determines the memory of a sequence's state, including that of the draft, by building a step without
// evaluating it. It runs on the engine's thread.
func (m *Model) StateShape() (shape cache.Shape) {
	m.Thread.Scope(func() {
		seq := cache.NewSequence(m.Kinds)
		defer seq.Free()
		hidden := m.Target.Forward(nn.NewBatch(m.Thread, nn.Part{Seq: seq, Tokens: []int32{0}}))
		if m.Stages != nil {
			hidden = m.Target.(models.Staged).Finish(1)
		}
		shape = seq.Shape()
		if m.Draft == nil || len(m.Draft.Layers()) == 0 {
			return
		}
		own := cache.NewSequence(m.Draft.Layers())
		defer own.Free()
		x := &models.DraftBatch{Batch: nn.NewBatch(m.Thread, nn.Part{Seq: own, Tokens: []int32{0}})}
		if !models.Standalone(m.Draft) {
			x.Target, x.Vectors, x.Hidden = []*cache.Sequence{seq}, m.Target.Embed(x.Tokens), hidden
		}
		m.Draft.Step(x)
		shape = shape.Plus(own.Shape())
	})
	return shape
}

// Close waits until the model is unused and frees it. before runs on the engine's thread just before that; it may be
// nil. A second call does nothing.
func (m *Model) Close(before func()) error {
	m.closing.Store(true)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	return m.Thread.Do(context.Background(), func() error {
		if before != nil {
			before()
		}
		m.Weights.Free()
		if m.draftWeights != nil {
			m.draftWeights.Free()
		}
		return nil
	})
}

// Closing reports whether Close was called. It may still wait for the model to be unused.
func (m *Model) Closing() bool { return m.closing.Load() }

// Do runs fn on the engine's thread while the model is loaded. After Close, it returns ErrClosed.
func (m *Model) Do(ctx context.Context, fn func() error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return ErrClosed
	}
	return m.Thread.Do(ctx, fn)
}
