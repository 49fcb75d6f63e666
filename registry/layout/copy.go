package layout

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/choose"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
)

// Place is one side of a copy: an image in a layout or archive, in a store, or in a registry.
type Place struct {
	Layout *Ref          // nil: a name
	Opened *Layout       // a source at the path of Layout that the caller has open; nil: a copy opens and closes it
	Name   manifest.Name // of a model
	Store  *store.Store  // where the name is; nil: in its registry
}

func (p Place) String() string {
	if p.Layout != nil {
		return p.Layout.String()
	}
	return p.Name.String()
}

// byDigest names an image of the same place.
func (p Place) byDigest(d digest.Digest) string {
	if p.Layout == nil {
		return manifest.Name{Host: p.Name.Host, Path: p.Name.Path, Digest: d}.String()
	}
	return Ref{Archive: p.Layout.Archive, Path: p.Layout.Path, Digest: d}.String()
}

// Options configure [Copy].
type Options struct {
	Push registry.PushOptions // of a copy to a registry. Its NoReferrers counts for all copies.
}

// Report says what a copy did.
type Report struct {
	Name   string        // of the image at its destination
	Digest digest.Digest // of its manifest

	Linked, Cloned int64 // bytes of blobs that share disk space with the source's
}

// Copy copies an image with its referrers. One side at least is a layout or an archive. The client emits the events.
// The name in a layout is that of the source if none is given.
//
// Of an index, a store gets the one image that is a model, as in a pull; other destinations get all of it.
func Copy(ctx context.Context, c *registry.Client, from, to Place, o Options) (*Report, error) {
	r, err := copyImage(ctx, c, from, to, o)
	if err != nil {
		return nil, fmt.Errorf("copy %s to %s: %w", from, to, err)
	}
	return r, nil
}

func copyImage(ctx context.Context, c *registry.Client, from, to Place, o Options) (*Report, error) {
	if o.Push.Format != "" {
		return nil, fmt.Errorf("a copy keeps the encoding: %w", errors.ErrUnsupported)
	}
	s, err := openSource(ctx, c, from)
	if err != nil {
		return nil, err
	}
	defer s.close()
	root, name, err := s.root(ctx)
	if err != nil {
		return nil, err
	}
	if to.Layout == nil && to.Store == nil {
		l, ok := s.(layoutSource)
		if !ok {
			return nil, fmt.Errorf("%s is in no layout: %w", from, errors.ErrUnsupported)
		}
		d, err := c.PushFiles(ctx, l, *root, to.Name, o.Push)
		return &Report{Name: to.Name.String(), Digest: d}, err
	}
	if to.Store != nil {
		get := func(d digest.Digest) (*remote.Manifest, error) {
			b, err := s.Manifest(ctx, d)
			if err != nil {
				return nil, err
			}
			kind, err := manifest.CheckType("", b)
			return &remote.Manifest{MediaType: kind, Digest: d, Bytes: b}, err
		}
		if root, err = choose.Model(root, get, from.byDigest); err != nil {
			return nil, err
		}
	}
	image, err := c.Gather(ctx, s, *root, o.Push)
	if err != nil {
		return nil, err
	}
	if stored, ok := s.(storeSource); ok {
		if err := stored.checkBlobs(image.Blobs); err != nil {
			return nil, err
		}
	}
	warn := func(text string) { c.Emit(registry.Event{Kind: registry.Warned, Err: errors.New(text)}) }
	t, err := openTarget(ctx, to, name, image, warn)
	if err != nil {
		return nil, err
	}
	defer t.close()
	x := &transfer{c: c, from: s, to: t}
	if err := x.blobs(ctx, image.Blobs, c.Concurrency(cmp.Or(to.Name.Host, from.Name.Host))); err != nil {
		return nil, t.explain(withHint(err, image))
	}
	final, err := t.finish(ctx)
	if err != nil {
		return nil, t.explain(err)
	}
	return &Report{Name: final, Digest: root.Digest, Linked: x.linked.Load(), Cloned: x.cloned.Load()}, nil
}

// target is where an image is copied to.
type target interface {
	// has reports whether a blob is there. progress is called while it is read.
	has(ctx context.Context, d ocispec.Descriptor, progress func(n int64)) (bool, error)
	// put copies a blob, and compares its digest. progress is called with the bytes that are copied.
	put(ctx context.Context, d ocispec.Descriptor, c *content, progress func(n int64)) (way, error)
	// finish shows the image, and returns its name.
	finish(ctx context.Context) (string, error)
	// explain makes the error of a full disk clear.
	explain(error) error
	// close ends the copy. Without finish, the image is not shown.
	close()
}

// way is how a blob was copied.
type way int

const (
	copied way = iota
	linked
	cloned
)

// transfer is the state of a copy.
type transfer struct {
	c              *registry.Client
	from           source
	to             target
	linked, cloned atomic.Int64
}

// blobs copies blobs, several at a time.
func (x *transfer) blobs(ctx context.Context, list []ocispec.Descriptor, concurrency int) error {
	var total int64
	for _, d := range list {
		total += d.Size
	}
	x.c.Emit(registry.Event{Kind: registry.Plan, Total: total})
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(concurrency)
	for _, d := range list {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return x.blob(ctx, d)
		})
	}
	return g.Wait()
}

// blobError is the failure of one blob.
type blobError struct {
	digest digest.Digest
	err    error
}

func (e *blobError) Error() string { return fmt.Sprintf("blob %s: %v", e.digest, e.err) }
func (e *blobError) Unwrap() error { return e.err }

// withHint adds the remedy if only an attached artifact needs the blob that failed.
func withHint(err error, image *registry.Image) error {
	var failed *blobError
	if !errors.As(err, &failed) {
		return err
	}
	for _, m := range image.Manifests {
		list, _ := manifest.Blobs(m.Bytes)
		for _, d := range list {
			if d.Digest == failed.digest {
				return err
			}
		}
	}
	return fmt.Errorf("%w; it is of what is attached to the model, which --no-referrers leaves out", err)
}

// blob copies one blob. Content with a wrong digest is read once more, because a mirror may be at fault.
func (x *transfer) blob(ctx context.Context, d ocispec.Descriptor) error {
	e := registry.Event{Kind: registry.Begin, Digest: d.Digest, Name: registry.BlobName(d), Total: d.Size}
	x.c.Emit(e)
	progress := func(n int64) {
		e.Kind = registry.Moved
		e.Bytes += n
		x.c.Emit(e)
	}
	there, err := x.to.has(ctx, d, progress)
	if err != nil {
		return &blobError{d.Digest, err}
	}
	e.Kind, e.Bytes = registry.Present, d.Size
	if !there {
		e.Bytes = 0
		how, err := x.put(ctx, d, progress)
		if errors.Is(err, remote.ErrDigest) && ctx.Err() == nil {
			e.Kind, e.Bytes, e.Err = registry.Retry, 0, err
			x.c.Emit(e)
			e.Err = nil
			how, err = x.put(ctx, d, progress)
		}
		if err != nil {
			return &blobError{d.Digest, err}
		}
		switch how {
		case linked:
			x.linked.Add(d.Size)
		case cloned:
			x.cloned.Add(d.Size)
		}
		e.Kind, e.Bytes = registry.Done, d.Size
	}
	x.c.Emit(e)
	return nil
}

func (x *transfer) put(ctx context.Context, d ocispec.Descriptor, progress func(int64)) (way, error) {
	c, err := x.from.open(ctx, d)
	if err != nil {
		return copied, err
	}
	defer c.Close()
	return x.to.put(ctx, d, c, progress)
}

// pour copies exactly the blob from r to w and compares its digest.
func pour(ctx context.Context, w io.Writer, r io.Reader, d ocispec.Descriptor, progress func(int64)) error {
	if err := manifest.CheckDigest(d.Digest); err != nil {
		return err
	}
	h := sha256.New()
	var n int64
	for buf := make([]byte, min(1<<20, d.Size+1)); ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		k, err := r.Read(buf)
		if n += int64(k); n > d.Size {
			return fmt.Errorf("it has more than %d bytes: %w", d.Size, remote.ErrDigest)
		}
		h.Write(buf[:k])
		if _, err := w.Write(buf[:k]); err != nil {
			return err
		}
		progress(int64(k))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if got := digest.NewDigest(digest.SHA256, h); got != d.Digest || n != d.Size {
		return fmt.Errorf("its %d bytes have digest %s: %w", n, got, remote.ErrDigest)
	}
	return nil
}
