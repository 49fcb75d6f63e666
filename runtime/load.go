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
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	_ "github.com/ingotml/ingot/models/all" // registers every model type
	"github.com/ingotml/ingot/models/nn"
	"github.com/opencontainers/go-digest"
)

// Options says how a model is loaded. The zero value computes in the type of the weights.
type Options struct {
	Float32 bool   // activations, accumulation and caches in float32; weights are converted exactly
	KV      KVType // type of the KV cache
	// PrefixCache is the size of the prefix cache in bytes. 0: none; negative: a quarter of the engine's memory that
	// the weights leave.
	PrefixCache int64
	// PrefixDir is the folder of the prefix cache's second tier, which later processes can use too; empty: none.
	// Several models may share a folder.
	PrefixDir  string
	PrefixDisk int64 // bound of the second tier in bytes; 0: none
	Sequences  int   // requests in a batch; 0: 32
	Queue      int   // requests that may wait for a slot; 0: 512
	Memory     int64 // bytes for the state of all running requests; 0: what the engine's memory leaves, negative: no limit
	Chunk      int   // prefill rows in a step; 0: as many as fit into its target time
	Draft      DraftOptions

	Loaded func(part float64) // reports the progress of loading, 0 to 1; may be nil
}

// Local is an Engine in this process.
type Local struct {
	*Processor
	thread  *mlx.Thread
	model   models.Model
	kinds   []cache.Kind // of its layers, with the options' type of keys and values
	weights *nn.Weights
	formats formats

	draft        models.Draft // nil if there is none
	draftWeights *nn.Weights  // nil if the draft uses the model's weights

	decodeMemory   decodeMemory
	batcher        *batcher
	tree           *prefix.Tree // the prefix cache, or nil; used on the engine's thread
	disk           *prefix.Disk // its second tier, or nil
	needsSnapshots bool         // some layers can only be restored to a snapshot

	mu      sync.RWMutex // held for reading while the model is in use
	closed  bool
	closing atomic.Bool // Close is waiting for the model to be unused
}

var errClosed = errors.New("the model was closed")

// Load maps a model's weights and builds the model. The thread must outlive it.
func Load(ctx context.Context, t *mlx.Thread, store *store.Store, entry *store.Entry, o Options) (*Local, error) {
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

// openPrefixDir opens the prefix cache's second tier. Its entries are valid only for the same weights, engine and
// settings.
func (l *Local) openPrefixDir(ctx context.Context, model digest.Digest, o Options) error {
	info := l.thread.Info()
	var cpu mlx.CPUReport
	err := l.thread.Do(ctx, func() error { cpu = l.thread.CPU(); return nil })
	if err != nil {
		return err
	}
	l.disk, err = prefix.OpenDisk(prefix.DiskOptions{
		Dir: o.PrefixDir, Budget: o.PrefixDisk,
		Model: fmt.Sprintf("%s MLX %s %s %s fast %v kv %s", model, info.Version, info.Flavour, l.weights.DType, cpu.Fast,
			o.KV),
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
			draft = draftFiles{} // the image was pulled without its draft
		case err != nil:
			return nil, err
		}
	}
	l := &Local{Processor: p, thread: t, decodeMemory: newDecodeMemory()}
	l.formats.vocabulary = sync.OnceValue(func() *grammar.Vocabulary { return vocabulary(p.tok, p.config.Facts().Vocab) })
	return l, t.Do(ctx, func() error { return l.build(ctx, blobs, draft, o) })
}

// build builds the model on the engine's thread. If it fails, it frees all arrays.
func (l *Local) build(ctx context.Context, blobs []tensorBlob, draft draftFiles, o Options) error {
	weights, err := loadWeights(ctx, l.thread, blobs, o)
	if err != nil {
		return err
	}
	built := false
	defer func() {
		if !built { // failed or panicked
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

// loadWeights loads tensors on the engine's thread. If it fails, it frees them.
func loadWeights(ctx context.Context, t *mlx.Thread, blobs []tensorBlob, o Options) (*nn.Weights, error) {
	tensors := map[string]*nn.Tensor{}
	done := false
	defer func() {
		if !done { // failed or panicked
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

// computeType returns the type of activations: the type of most unquantized weights.
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
