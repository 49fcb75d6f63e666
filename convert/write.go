package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"
)

// bufferSize is what is read and written at once; larger ones are not faster.
const bufferSize = 1 << 20

var buffers = sync.Pool{New: func() any {
	b := make([]byte, bufferSize)
	return &b
}}

// Event tells how far a run is.
type Event struct {
	Tensors, TotalTensors int   // complete, planned
	Bytes, TotalBytes     int64 // of all blobs
}

// WriteOptions says how a plan is carried out. The result does not depend on it.
type WriteOptions struct {
	Parallel int         // blobs written at once; 0 = as many as processors
	Progress func(Event) // called after each piece, never by two goroutines at once
}

// Written is an image whose blobs are all in the store.
type Written struct {
	Image  manifest.Image
	Reused int64 // bytes of blobs that the store had already
}

// Write writes the plan's blobs. The caller holds the store's lock until it has put the image under a name.
//
// All blobs stay in the ingest folder until the last one is complete. Until then an error or a cancelled ctx removes
// them all; after that the run is no longer cancelled, since blobs that have their names may be in use by others.
func (inv *Inventory) Write(ctx context.Context, store *manifest.Store, p *Plan, opts WriteOptions) (Written, error) {
	w := writer{inv: inv, store: store, progress: opts.Progress}
	defer w.abort()
	if err := w.stage(ctx, p, parallel(opts.Parallel)); err != nil {
		return Written{}, err
	}
	return w.commit(p)
}

func parallel(n int) int {
	if n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

type writer struct {
	inv      *Inventory
	store    *manifest.Store
	blobs    []*manifest.BlobWriter // in the order of the plan's layers
	progress func(Event)
	mu       sync.Mutex
	event    Event
}

// stage writes all blobs into the ingest folder.
func (w *writer) stage(ctx context.Context, p *Plan, n int) error {
	layers := p.layers()
	w.blobs = make([]*manifest.BlobWriter, len(layers))
	w.event.TotalTensors = len(p.Tensors)
	for _, l := range layers {
		w.event.TotalBytes += l.Size
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(n)
	for i, l := range layers {
		group.Go(func() error {
			var err error
			if i < len(p.Files) {
				err = w.blob(ctx, i, l.Size, bytes.NewReader(p.Files[i].Data))
			} else {
				err = w.tensor(ctx, i, p.Tensors[i-len(p.Files)])
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				return fmt.Errorf("write %s %s: %w", l.Kind, l.Name, err)
			}
			return err
		})
	}
	return group.Wait()
}

func (w *writer) tensor(ctx context.Context, i int, t Tensor) error {
	header, _, err := t.header()
	if err != nil {
		return err
	}
	source, ok := w.inv.Weights.Lookup(t.Sources[0].Name)
	if !ok || source.Size() != t.Bytes {
		return fmt.Errorf("%w: the plan is not of this checkpoint", ErrSource)
	}
	if err := w.blob(ctx, i, t.Size, io.MultiReader(bytes.NewReader(header), source.Reader())); err != nil {
		return err
	}
	w.report(0, 1)
	return nil
}

// blob copies r, which must have size bytes, into blob i.
func (w *writer) blob(ctx context.Context, i int, size int64, r io.Reader) error {
	// The copy below looks at ctx; the blob must still be committed when it is cancelled too late.
	out, err := w.store.NewBlob(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	w.blobs[i] = out
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(r, *buf)
		if n > 0 {
			if _, err := out.Write((*buf)[:n]); err != nil {
				return err
			}
			size -= int64(n)
			w.report(int64(n), 0)
		}
		switch {
		case (err == io.EOF || err == io.ErrUnexpectedEOF) && size == 0:
			return nil
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return fmt.Errorf("%w: %d bytes fewer than planned", ErrSource, size)
		case err != nil:
			return err
		}
	}
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

// commit gives all blobs their names.
func (w *writer) commit(p *Plan) (Written, error) {
	there := w.present()
	image := manifest.Image{Config: p.Config, Layers: p.layers()}
	var group errgroup.Group
	group.SetLimit(commitParallel)
	for i := range image.Layers {
		group.Go(func() error {
			d, size, err := w.blobs[i].Commit()
			image.Layers[i].Digest, image.Layers[i].Size = d, size
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Written{}, err
	}
	out := Written{Image: image}
	for _, l := range image.Layers {
		if there[l.Digest.Encoded()] {
			out.Reused += l.Size
		}
	}
	return out, nil
}

// commitParallel is how many blobs are synced at once: this waits for the disk, not for a processor.
const commitParallel = 8

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

// abort removes the blobs that are not committed.
func (w *writer) abort() {
	for _, b := range w.blobs {
		if b != nil {
			_ = b.Abort()
		}
	}
}
