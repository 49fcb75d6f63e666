package batch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/constraint"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/runtime/ranks"
)

// Engine is a loaded model in this process. It implements Engine, Embedder and Reporter.
type Engine struct {
	model    *load.Model
	formats  *constraint.Formats
	prefixes *prefixes
	batcher  *batcher
	ranks    *ranks.Leader // nil: the model is on one rank

	closeDisk sync.Once
}

// Open loads the model of an image and prepares it for requests. The thread must outlive the engine.
func Open(
	ctx context.Context, t *mlx.Thread, store *store.Store, entry *store.Entry, o runtime.Options,
) (*Engine, error) {
	return OpenWith(ctx, t, store, entry, processor.Files{Store: store, Image: entry.Image}.Processor, o)
}

// OpenWith is Open for callers that read the processor of entry beside other work: read waits for it.
func OpenWith(
	ctx context.Context, t *mlx.Thread, store *store.Store, entry *store.Entry,
	read func() (*processor.Processor, error), o runtime.Options,
) (*Engine, error) {
	return OpenRanks(ctx, t, nil, nil, store, entry, read, o)
}

// OpenRanks is OpenWith for rank 0 of a group that divides the model. It loads this rank's part and waits until the
// followers have loaded theirs. The engine owns l, which ends the group when the engine is closed. It has no prefix
// cache on disk. With neither a group nor a leader it is OpenWith.
func OpenRanks(
	ctx context.Context, t *mlx.Thread, group *mlx.Group, l *ranks.Leader, store *store.Store, entry *store.Entry,
	read func() (*processor.Processor, error), o runtime.Options,
) (*Engine, error) {
	e, err := open(ctx, t, group, l, store, entry, read, o)
	if err != nil {
		l.End(err)
		return nil, fmt.Errorf("loading %s: %w", entry.Name, err)
	}
	return e, nil
}

func open(
	ctx context.Context, t *mlx.Thread, group *mlx.Group, l *ranks.Leader, store *store.Store, entry *store.Entry,
	read func() (*processor.Processor, error), o runtime.Options,
) (*Engine, error) {
	verified := make(chan error, 1) // beside the load, which maps most bytes and does not read them
	verifying, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { verified <- store.VerifyBlobs(verifying, entry.Image.Blobs()...) }()
	m, err := load.OpenRank(ctx, t, group, processor.Files{Store: store, Image: entry.Image}, read, o)
	if err != nil {
		return nil, err
	}
	if err = <-verified; err == nil {
		err = l.Wait(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close(nil))
	}
	o.Begin("memory")
	p := m.Processor
	e := &Engine{model: m, ranks: l, formats: constraint.New(p.Tokenizer(), p.EOS, p.Config.Facts().Vocab)}
	err = t.Do(ctx, func() error {
		var mem memory
		mem, e.prefixes = assignMemory(m, l, o)
		e.batcher = newBatcher(m, mem, e.prefixes, l, o)
		return nil
	})
	if err == nil {
		err = e.prefixes.openDisk(ctx, m, store, entry.Digest, o)
	}
	if err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// Model returns the loaded model.
func (e *Engine) Model() *load.Model { return e.model }

// Processor returns the parts of the model that do not need the engine.
func (e *Engine) Processor() *processor.Processor { return e.model.Processor }

// GPU reports whether the model computes on a GPU.
func (e *Engine) GPU() bool { return e.model.Thread.Info().GPU }

// Generate implements Engine.
func (e *Engine) Generate(ctx context.Context, r runtime.Request) iter.Seq2[runtime.Event, error] {
	if err := e.model.Pictures.CheckNoVideo(r.Prompt); err != nil {
		return func(yield func(runtime.Event, error) bool) { yield(runtime.Event{}, err) }
	}
	return e.Continue(ctx, r)
}

// Continue is Generate for prompts that may contain video tokens, as references do.
func (e *Engine) Continue(ctx context.Context, r runtime.Request) iter.Seq2[runtime.Event, error] {
	return func(yield func(runtime.Event, error) bool) {
		ctx, cancel := runtime.WithDeadline(ctx, r.Deadline, 0)
		defer cancel() // a caller that stops reading cancels the request
		g, err := e.begin(ctx, r)
		if err != nil {
			yield(runtime.Event{}, err)
			return
		}
		if err := e.batcher.add(g); err != nil {
			yield(runtime.Event{}, err)
			return
		}
		defer g.wait(cancel)
		if r.Queued != nil && len(r.Pictures) == 0 {
			r.Queued()
		}
		var last runtime.Stats
		err = g.out.Each(ctx, func(e runtime.Event) bool {
			last = e.Stats
			return yield(e, nil)
		})
		if err != nil {
			yield(runtime.Event{Stats: last}, err)
		}
	}
}

// Close implements Engine.
func (e *Engine) Close() error {
	err := e.model.Close(e.prefixes.close)
	e.closeDisk.Do(e.prefixes.closeDisk)
	e.ranks.End(nil)
	return err
}

// Ended returns a channel that is closed when the model's group of ranks has ended, after which all requests fail. It
// is nil for a model on one rank.
func (e *Engine) Ended() <-chan struct{} { return e.ranks.Ended() }

// Err returns why the model's group of ranks has ended, or nil.
func (e *Engine) Err() error { return e.ranks.Err() }
