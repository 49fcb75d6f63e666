package write

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
)

// Sink takes the blobs of an image while others are written, such as a repository of a registry. Its methods are safe
// for concurrent use, and bound their own concurrency.
type Sink interface {
	// Place names what has the blobs. A later run trusts what was sent to a place of the same name, after it asked Has.
	Place() string
	// Has reports whether the place has a blob.
	Has(ctx context.Context, d digest.Digest, size int64) (bool, error)
	// Put sends a blob, unless the place has it. name is for messages. The file stays unchanged meanwhile.
	Put(ctx context.Context, d digest.Digest, size int64, name, path string) error
	// Streams reports whether Stream can be used.
	Streams() bool
	// Stream sends a blob of a known size while it is written, as the files that next returns. When next is called again,
	// the place has the file before. After the last one, next returns "" and the digest. If again is true, the place lost
	// what it had, or cannot do this: the blob has to be made again.
	Stream(ctx context.Context, size int64, name string,
		next func(context.Context) (path string, bytes int64, d digest.Digest, err error)) (again bool, err error)
}

// sentChecks is the number of blobs of earlier runs that the sink is asked about at a time.
const sentChecks = 16

// reserve waits until there is space for a blob, if blobs are not kept: [limits.UnsentBlobs], or all of it for a larger
// one. release may be called more than once.
func (w *writer) reserve(ctx context.Context, size int64) (release func(), err error) {
	if !w.noKeep {
		return func() {}, nil
	}
	n := min(size, limits.UnsentBlobs)
	if err := w.disk.Acquire(ctx, n); err != nil {
		return nil, err
	}
	released := false
	return func() {
		if !released {
			released = true
			w.disk.Release(n)
		}
	}, nil
}

// send gives a sealed blob to the sink, and removes it if it is not to be kept.
func (w *writer) send(ctx context.Context, name string) error {
	if w.sink == nil {
		return nil
	}
	d, size, ok := w.ingest.Lookup(name)
	if !ok {
		return fmt.Errorf("%s: the blob is missing", name)
	}
	path, err := w.ingest.Locate(d)
	if err != nil {
		return err
	}
	if path != "" { // else another name with the same bytes was sent and removed
		if err := w.sink.Put(ctx, d, size, name, path); err != nil {
			return err
		}
	}
	if w.noKeep {
		return w.ingest.Release(name, w.sink.Place())
	}
	return nil
}

// resend sends a blob that an earlier run sealed, in the background.
func (w *writer) resend(ctx context.Context, what, name string, size int64) error {
	if w.sink == nil || w.ingest.Released(name) {
		return nil
	}
	release, err := w.reserve(ctx, size)
	if err != nil {
		return err
	}
	w.sealing.Go(func() error {
		defer release()
		if err := w.send(ctx, name); err != nil {
			w.fail(fmt.Errorf("write %s: %w", what, err))
		}
		return nil
	})
	return nil
}

// checkSent asks the sink which blobs of earlier runs it still has; others are made again. It sends those that an
// earlier run left on the disk, so that they do not add to this run's.
func (w *writer) checkSent(ctx context.Context) {
	if w.sink == nil || !w.noKeep {
		return
	}
	var names []string
	for _, f := range w.plan.Files {
		names = append(names, blobName(f.Kind, f.Name))
	}
	for _, t := range w.plan.Tensors {
		names = append(names, blobName(manifest.KindTensor, t.Name))
	}
	slots := make(chan struct{}, sentChecks)
	for _, name := range names {
		d, size, sent := w.ingest.Sent(name, w.sink.Place())
		_, _, sealed := w.ingest.Lookup(name)
		if !sent && !sealed {
			continue
		}
		slots <- struct{}{}
		if sealed {
			w.sealing.Go(func() error {
				defer func() { <-slots }()
				if err := w.send(ctx, name); err != nil {
					w.fail(fmt.Errorf("blob %s: %w", name, err))
				}
				return nil
			})
			continue
		}
		w.sealing.Go(func() error {
			defer func() { <-slots }()
			there, err := w.sink.Has(ctx, d, size)
			switch {
			case err != nil:
				w.fail(fmt.Errorf("blob %s: %w", d, err))
			case there:
				w.ingest.Adopt(name)
			}
			return nil
		})
	}
	_ = w.sealing.Wait()
}
