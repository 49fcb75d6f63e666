package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/cache/prefix"
	"github.com/ingotml/ingot/grammar"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	_ "github.com/ingotml/ingot/models/all" // every model type that an image may be of
	"github.com/ingotml/ingot/models/nn"
	"github.com/opencontainers/go-digest"
)

// Options are how a model is loaded. The zero value computes in the type of the weights.
type Options struct {
	Float32     bool   // activations, accumulation and caches in float32; weights converted exactly
	KV          KVType // how caches keep keys and values
	PrefixCache int64  // bytes of state that is kept of past requests; 0 keeps none, below it a fourth of what weights leave of the engine's memory
	PrefixDir   string // where what has no room in memory is kept, also for later processes; empty: nowhere. A folder may serve many models
	PrefixDisk  int64  // most bytes there; 0: no limit
	Sequences   int    // requests that run at once; 0: 32
	Queue       int    // requests that wait beside them; 0: 512
	Memory      int64  // bytes of state that running requests may have together; 0: what the engine's memory leaves, below it no limit
	Chunk       int    // rows of prompts in a step; 0: by the time that they take
	Draft       DraftOptions

	Loaded func(part float64) // is told how much of the weights is loaded, 0 to 1; may be nil
}

// Local is an Engine in this process.
type Local struct {
	*Processor
	thread  *mlx.Thread
	model   models.Model
	kinds   []cache.Kind // of its layers, with keys and values as the options have them
	weights *nn.Weights
	formats formats

	draft        models.Draft // nil without one
	draftWeights *nn.Weights  // nil where they are the model's own

	decodeMemory   decodeMemory
	batcher        *batcher
	tree           *prefix.Tree // what past requests have left; nil without a prefix cache, and of the engine's thread
	disk           *prefix.Disk // its second tier, or nil
	needsSnapshots bool         // some layers go back to where they were copied only

	mu      sync.RWMutex // held for reading by whatever uses the model
	closed  bool
	closing atomic.Bool // Close waits for whatever uses the model
}

var errClosed = errors.New("the model was closed")

// Load maps a model's weights and builds it. The thread outlives it.
func Load(ctx context.Context, t *mlx.Thread, store *manifest.Store, entry *manifest.Entry, o Options) (*Local, error) {
	l, err := load(ctx, t, files{store, entry.Image}, o)
	if err == nil && l.tree != nil && o.PrefixDir != "" {
		if err = l.openPrefixDir(ctx, entry.Digest, o); err != nil {
			l.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", entry.Name, err)
	}
	return l, nil
}

// openPrefixDir gives the prefix cache its second tier. State depends on the model's bytes and on how they are computed with.
func (l *Local) openPrefixDir(ctx context.Context, model digest.Digest, o Options) error {
	info := l.thread.Info()
	var cpu mlx.CPUReport
	err := l.thread.Do(ctx, func() error { cpu = l.thread.CPU(); return nil })
	if err != nil {
		return err
	}
	l.disk, err = prefix.OpenDisk(prefix.DiskOptions{
		Dir: o.PrefixDir, Budget: o.PrefixDisk,
		Model: fmt.Sprintf("%s MLX %s %s %s fast %v kv %s", model, info.Version, info.Flavour, l.weights.DType, cpu.Fast, o.KV),
	})
	if err != nil {
		return err
	}
	return l.thread.Do(ctx, func() error { l.tree.SetDisk(l.thread, l.disk); return nil })
}

func load(ctx context.Context, t *mlx.Thread, f files, o Options) (*Local, error) {
	p, err := f.processor()
	if err != nil {
		return nil, err
	}
	blobs, err := f.openBlobs(p.config, false)
	if err != nil {
		return nil, err
	}
	var draft draftFiles
	if !o.Draft.Off {
		draft, err = f.draft(p.config)
		switch {
		case errors.Is(err, manifest.ErrBlobMissing):
			draft = draftFiles{} // pulled without it
		case err != nil:
			return nil, err
		}
	}
	l := &Local{Processor: p, thread: t, decodeMemory: newDecodeMemory()}
	l.formats.vocabulary = sync.OnceValue(func() *grammar.Vocabulary { return vocabulary(p.tok, p.config.Facts().Vocab) })
	return l, t.Do(ctx, func() error { return l.build(ctx, blobs, draft, o) })
}

// build runs on the engine's thread. Whatever fails, no array stays behind.
func (l *Local) build(ctx context.Context, blobs []blob, draft draftFiles, o Options) error {
	weights, err := loadWeights(ctx, l.thread, blobs, o)
	if err != nil {
		return err
	}
	built := false
	defer func() {
		if !built { // failed, or left by a panic
			weights.Free()
			if l.draftWeights != nil {
				l.draftWeights.Free()
			}
		}
	}()
	model, err := models.Build(l.thread, l.config, weights)
	if err == nil {
		l.kinds, err = o.KV.kinds(model.Layers())
	}
	if err != nil {
		return err
	}
	l.model, l.weights = model, weights
	if !o.Draft.Off {
		if l.draft, l.draftWeights, err = l.buildDraft(ctx, draft, o); err != nil {
			return fmt.Errorf("the draft: %w", err)
		}
	}
	l.batcher = newBatcher(l, o)
	l.assignMemory(blobs, o)
	l.needsSnapshots = slices.ContainsFunc(l.kinds, func(k cache.Kind) bool { return !k.Whole() && k != cache.None })
	l.vision.setTower(model)
	built = true
	return nil
}

// loadWeights runs on the engine's thread.
func loadWeights(ctx context.Context, t *mlx.Thread, blobs []blob, o Options) (*nn.Weights, error) {
	tensors := map[string]*nn.Tensor{}
	done := false
	defer func() {
		if !done { // failed, or left by a panic
			nn.NewWeights(0, tensors).Free()
		}
	}()
	for i, b := range blobs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		tensor, err := b.load(t, o.Float32)
		if err != nil {
			return nil, err
		}
		tensors[b.name()] = tensor
		if o.Loaded != nil {
			o.Loaded(float64(i+1) / float64(len(blobs)))
		}
	}
	done = true
	return nn.NewWeights(computeType(tensors, o), tensors), nil
}

// computeType is the type of activations: that of most plain weights.
func computeType(tensors map[string]*nn.Tensor, o Options) mlx.DType {
	if o.Float32 {
		return mlx.Float32
	}
	count := map[mlx.DType]int{}
	for _, t := range tensors {
		if t.Packed == nil {
			count[t.Array.DType()]++
		}
	}
	best := mlx.BFloat16
	for _, d := range []mlx.DType{mlx.Float16, mlx.Float32} {
		if count[d] > count[best] {
			best = d
		}
	}
	return best
}

// Close implements Engine.
func (l *Local) Close() error {
	l.closing.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	err := l.thread.Do(context.Background(), func() error {
		if l.tree != nil {
			l.tree.Close()
		}
		l.weights.Free()
		if l.draftWeights != nil {
			l.draftWeights.Free()
		}
		return nil
	})
	if l.disk != nil {
		l.disk.Close()
	}
	return err
}

// do runs fn on the engine's thread while the model is loaded.
func (l *Local) do(ctx context.Context, fn func() error) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return errClosed
	}
	return l.thread.Do(ctx, fn)
}
