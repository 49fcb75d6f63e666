// Package write writes the blobs of a plan into the store, streamed from the source on all processors.
//
// Contract:
//   - Blobs stay in the store's ingest folder until the last one is complete. A run that fails or is killed leaves
//     models and blobs unchanged; the next run with the same plan and source resumes it.
//   - After an error of the source itself, which another run would have again, nothing of the run is kept.
//   - Bytes of a remote source that are not the published ones are an error, and nothing of that run is kept.
//   - The number of processors and the amount of memory have no influence on a byte.
//   - Memory is a fixed number of slabs, whatever the size of a tensor.
package write

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
	"sync/atomic"
	"syscall"

	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// Options control how a plan is written. They do not affect the result.
type Options struct {
	Parallel int         // concurrent tensors; 0 = the number of processors
	Memory   int64       // memory limit of the process in bytes; 0 = DefaultMemory
	Progress func(Event) // called after each batch, never concurrently
	Sink     Sink        // gets each blob while others are written; nil = none
	NoKeep   bool        // remove each blob as soon as Sink has it; the store then gets none of them
}

// Written is an image whose blobs are all in the store.
type Written struct {
	Image   manifest.Image
	Reused  int64 // bytes of blobs that were already in the store
	Resumed int64 // bytes of blobs that an interrupted run had completed

	ingest    *ingest.Staging
	checksums *checksums
}

// SourceChecksum returns the BLAKE3 hash of a source tensor's bytes in its file. It is zero for some tensors of remote
// sources, which would have to be read a second time.
func (w *Written) SourceChecksum(t source.Tensor) ([ChecksumSize]byte, error) {
	return w.checksums.lookup(t)
}

// Done removes the state for resuming. Call it when the image has its name.
func (w *Written) Done() { w.ingest.Remove() }

// Close releases the ingest folder and keeps the state for resuming. After Done it does nothing.
func (w *Written) Close() { w.ingest.Close() }

// Image writes the blobs of a plan's image. The caller holds the store's lock until the image has a name; it then calls
// Done, and Close in any case.
//
// All blobs stay in the store's ingest folder until the last one is complete. After an error, a cancelled ctx or a
// crash, Image resumes if the plan and its sources are the same. Publishing the blobs cannot be cancelled, because
// other images may use them from then on.
func Image(ctx context.Context, store *store.Store, p *plan.Plan, opts Options) (*Written, error) {
	n := opts.Parallel
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	memory, err := newSlabs(opts.Memory, n)
	if err != nil {
		return nil, err
	}
	key, err := p.Key()
	if err != nil {
		return nil, err
	}
	ingest, err := ingest.Open(ctx, store, key)
	if err != nil {
		return nil, Explain(err)
	}
	total := Event{TotalTensors: len(p.Tensors), TotalBytes: p.Totals.SourceBytes + p.Totals.FileBytes}
	w := &writer{
		store: store, plan: p, ingest: ingest, slabs: memory,
		idle: semaphore.NewWeighted(int64(n)), progress: NewProgress(total, opts.Progress),
		sink: opts.Sink, noKeep: opts.NoKeep, disk: semaphore.NewWeighted(limits.UnsentBlobs),
	}
	out, err := w.write(ctx, n)
	if err != nil && (source.Differs(w.sources()) || source.Unusable(err)) {
		ingest.Remove() // what is complete may be wrong, too, or no run can use it
		return nil, err
	}
	if err != nil {
		ingest.Close()
		return nil, Explain(err)
	}
	return out, nil
}

func (w *writer) write(ctx context.Context, n int) (*Written, error) {
	if err := w.stage(ctx, n); err != nil {
		return nil, err
	}
	if err := source.Verify(ctx, w.sources()); err != nil {
		return nil, err
	}
	return w.publish()
}

// Explain adds a remedy to errors of the operating system.
func Explain(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w; free some space and run this again to resume", err)
	case errors.Is(err, syscall.EROFS) || errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w; set INGOT_HOME to use another store", err)
	}
	return err
}

type writer struct {
	store     *store.Store
	plan      *plan.Plan
	ingest    *ingest.Staging
	slabs     *slabs
	idle      *semaphore.Weighted // processors without a file or tensor to work on
	sealing   errgroup.Group      // blobs being synced, while processors continue
	fail      context.CancelCauseFunc
	progress  *Progress
	resumed   atomic.Int64
	checksums checksums
	factors   factors
	sink      Sink
	noKeep    bool
	disk      *semaphore.Weighted // bytes of blobs that the sink does not have yet, if noKeep
}

// sealParallel is the number of blobs synced at a time. A sync waits for the disk; with fewer of them, a model's many
// small blobs would stall the processors.
const sealParallel = 32

// stage writes all blobs into the ingest folder.
func (w *writer) stage(ctx context.Context, n int) error {
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
				fail(fmt.Errorf("write %s %s: %w", what, name, err)) // the first error wins
			}
		})
	}
	w.checkSent(ctx)
	for i := range w.plan.Files {
		f := &w.plan.Files[i]
		each("file", f.Name, func() error { return w.file(ctx, f) })
	}
	for _, t := range w.order() {
		each("tensor", t.Name, func() error { return w.tensor(ctx, t) })
	}
	group.Wait()
	_ = w.sealing.Wait()
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// largestFirst orders tensors by size, so that all processors finish at about the same time.
func largestFirst(tensors []plan.Tensor) []*plan.Tensor {
	order := make([]*plan.Tensor, len(tensors))
	for i := range tensors {
		order[i] = &tensors[i]
	}
	slices.SortStableFunc(order, func(a, b *plan.Tensor) int { return cmp.Compare(b.SourceBytes(), a.SourceBytes()) })
	return order
}

// finished reports whether the ingest folder or the store already has a blob, and if so counts it as done.
func (w *writer) finished(name string, source int64, tensors int) bool {
	_, size, ok := w.ingest.Lookup(name)
	if ok {
		w.resumed.Add(size)
		w.progress.Resume(source, tensors)
	}
	return ok
}

// blobName returns a blob's name in the ingest folder.
func blobName(kind manifest.Kind, name string) string { return string(kind) + "/" + name }

func (w *writer) file(ctx context.Context, f *source.File) error {
	name := blobName(f.Kind, f.Name)
	if w.finished(name, f.Size, 0) {
		return w.resend(ctx, "file "+f.Name, name, f.Size)
	}
	release, err := w.reserve(ctx, f.Size)
	if err != nil {
		return err
	}
	blob, err := w.ingest.NewBlob(name)
	if err != nil {
		release()
		return err
	}
	if _, err := io.Copy(struct{ io.Writer }{blob}, bytes.NewReader(f.Data)); err != nil {
		blob.Abort()
		release()
		return err
	}
	w.seal(ctx, "file "+f.Name, blob, func(int64) error {
		defer release()
		w.progress.Add(f.Size, 0)
		return w.send(ctx, name)
	})
	return nil
}

// seal completes a blob in the background, and then calls done. After a failure the run ends, so that nothing waits for
// done.
func (w *writer) seal(ctx context.Context, what string, blob *ingest.StagedBlob, done func(size int64) error) {
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

// publish moves all blobs from the ingest folder into the store.
func (w *writer) publish() (*Written, error) {
	existing := w.present()
	if err := w.ingest.Publish(); err != nil {
		return nil, err
	}
	image := manifest.Image{Config: w.plan.Config, Layers: w.plan.Layers()}
	out := &Written{Image: image, Resumed: w.resumed.Load(), ingest: w.ingest, checksums: &w.checksums}
	for i, l := range out.Image.Layers {
		if l.Digest == "" {
			d, size, ok := w.ingest.Lookup(blobName(l.Kind, l.Name))
			if !ok {
				return nil, fmt.Errorf("write %s %s: the blob is missing", l.Kind, l.Name)
			}
			l.Digest, l.Size = d, size
			out.Image.Layers[i] = l
		}
		if existing[l.Digest.Encoded()] {
			out.Reused += l.Size
		}
	}
	return out, nil
}

// present lists the store's blobs before publishing. It only serves the number of reused bytes, so errors are ignored.
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
