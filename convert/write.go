package convert

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// Event tells how far a run is.
type Event struct {
	Tensors, TotalTensors int   // complete, planned
	Bytes, TotalBytes     int64 // of the sources
	Resumed               int64 // of Bytes, those that an earlier run had finished
}

// WriteOptions says how a plan is carried out. The result does not depend on it.
type WriteOptions struct {
	Parallel int         // tensors at once; 0 = as many as processors
	Memory   int64       // bytes that the process may take; 0 = DefaultMemory
	Progress func(Event) // called after each piece, never by two goroutines at once
}

// Written is an image whose blobs are all in the store.
type Written struct {
	Image   manifest.Image
	Reused  int64 // bytes of blobs that the store had already
	Resumed int64 // bytes of blobs that an earlier run had finished

	ingest *manifest.Ingest
	sums   *sums
}

// Done forgets what another run would go on from; call it when the image has its name.
func (w *Written) Done() { w.ingest.Remove() }

// Close keeps it. After Done it does nothing.
func (w *Written) Close() { w.ingest.Close() }

// Write writes the plan's blobs. The caller holds the store's lock until it has put the image under a name, calls Done
// then, and Close in any case.
//
// All blobs stay in the store's ingest folder until the last one is complete. After an error, a cancelled ctx or a
// crash, the same plan with the same sources goes on from there. Once they get their names the run is no longer
// cancelled, since others may use them.
func (p *Plan) Write(ctx context.Context, store *manifest.Store, opts WriteOptions) (*Written, error) {
	n := opts.Parallel
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	memory, err := newSlabs(opts.Memory, n)
	if err != nil {
		return nil, err
	}
	key, err := p.key()
	if err != nil {
		return nil, err
	}
	ingest, err := store.OpenIngest(ctx, key)
	if err != nil {
		return nil, explain(err)
	}
	w := &writer{store: store, plan: p, ingest: ingest, slabs: memory, idle: semaphore.NewWeighted(int64(n)), progress: opts.Progress}
	out, err := w.write(ctx, n)
	if err != nil {
		ingest.Close()
		return nil, explain(err)
	}
	return out, nil
}

func (w *writer) write(ctx context.Context, n int) (*Written, error) {
	if err := w.stage(ctx, n); err != nil {
		return nil, err
	}
	return w.publish()
}

// explain adds what to do about errors of the system.
func explain(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w; free some space and run this again: it goes on from where it was", err)
	case errors.Is(err, syscall.EROFS) || errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w; INGOT_HOME chooses another store", err)
	}
	return err
}

type writer struct {
	store    *manifest.Store
	plan     *Plan
	ingest   *manifest.Ingest
	slabs    *slabs
	idle     *semaphore.Weighted // processors that work on no file or tensor
	sealing  errgroup.Group      // waits for the disk, while the processors go on
	fail     context.CancelCauseFunc
	progress func(Event)
	mu       sync.Mutex
	event    Event
	resumed  int64
	sums     sums
}

// sealParallel is how many blobs are synced at once. Syncs wait for the disk; with fewer of them at a time, the many small blobs
// of a model would make the processors wait as well.
const sealParallel = 32

// stage writes all blobs into the ingest folder.
func (w *writer) stage(ctx context.Context, n int) error {
	w.event.TotalTensors = len(w.plan.Tensors)
	w.event.TotalBytes = w.plan.Totals.SourceBytes + w.plan.Totals.FileBytes
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	w.fail = fail
	w.sealing.SetLimit(sealParallel)
	var group sync.WaitGroup
	each := func(what string, name string, do func() error) {
		_ = w.idle.Acquire(context.Background(), 1)
		group.Go(func() {
			defer w.idle.Release(1)
			err := ctx.Err()
			if err == nil {
				err = do()
			}
			if err != nil {
				fail(fmt.Errorf("write %s %s: %w", what, name, err)) // the first one counts
			}
		})
	}
	for i := range w.plan.Files {
		f := &w.plan.Files[i]
		each("file", f.Name, func() error { return w.file(ctx, f) })
	}
	for _, t := range largestFirst(w.plan.Tensors) {
		each("tensor", t.Name, func() error { return w.tensor(ctx, t) })
	}
	group.Wait()
	_ = w.sealing.Wait()
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// largestFirst orders tensors so that the processors end at about the same time.
func largestFirst(tensors []Tensor) []*Tensor {
	order := make([]*Tensor, len(tensors))
	for i := range tensors {
		order[i] = &tensors[i]
	}
	slices.SortStableFunc(order, func(a, b *Tensor) int { return cmp.Compare(b.sourceBytes(), a.sourceBytes()) })
	return order
}

// finished tells whether an earlier run has made a blob, or the store has it; if so it counts as done.
func (w *writer) finished(name string, source int64, tensors int) bool {
	_, size, ok := w.ingest.Lookup(name)
	if ok {
		w.mu.Lock()
		w.resumed += size
		if w.progress != nil {
			w.event.Resumed += source
		}
		w.mu.Unlock()
		w.report(source, tensors)
	}
	return ok
}

// blobName is the name under which a blob is known in the ingest folder.
func blobName(kind manifest.Kind, name string) string { return string(kind) + "/" + name }

func (w *writer) file(ctx context.Context, f *File) error {
	name := blobName(f.Kind, f.Name)
	if w.finished(name, f.Size, 0) {
		return nil
	}
	blob, err := w.ingest.NewBlob(name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(struct{ io.Writer }{blob}, bytes.NewReader(f.Data)); err != nil {
		blob.Abort()
		return err
	}
	w.seal(ctx, "file "+f.Name, blob, func(int64) error {
		w.report(f.Size, 0)
		return nil
	})
	return nil
}

// seal completes a blob in the background, and calls done then.
func (w *writer) seal(ctx context.Context, what string, blob *manifest.IngestBlob, done func(size int64) error) {
	w.sealing.Go(func() error {
		defer blob.Abort()
		_, size, err := blob.Seal(ctx)
		if err == nil {
			err = done(size)
		}
		if err != nil {
			w.fail(fmt.Errorf("write %s: %w", what, err))
		}
		return nil
	})
}

func (w *writer) report(bytes int64, tensors int) {
	if w.progress == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.event.Bytes += bytes
	w.event.Tensors += tensors
	w.progress(w.event)
}

// publish gives all blobs their names.
func (w *writer) publish() (*Written, error) {
	there := w.present()
	if err := w.ingest.Publish(); err != nil {
		return nil, err
	}
	out := &Written{Image: manifest.Image{Config: w.plan.Config, Layers: w.plan.layers()}, Resumed: w.resumed, ingest: w.ingest, sums: &w.sums}
	for i, l := range out.Image.Layers {
		if l.Digest == "" {
			d, size, ok := w.ingest.Lookup(blobName(l.Kind, l.Name))
			if !ok {
				return nil, fmt.Errorf("write %s %s: the blob is not there", l.Kind, l.Name)
			}
			l.Digest, l.Size = d, size
			out.Image.Layers[i] = l
		}
		if there[l.Digest.Encoded()] {
			out.Reused += l.Size
		}
	}
	return out, nil
}

// present lists the files of the store's blobs, to tell what was there before. It only serves a figure for people.
func (w *writer) present() map[string]bool {
	out := map[string]bool{}
	entries, err := os.ReadDir(filepath.Dir(w.store.BlobPath(digest.FromString(""))))
	if err != nil {
		return out
	}
	for _, e := range entries {
		out[e.Name()] = true
	}
	return out
}
