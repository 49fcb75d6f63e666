package registry

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Uploader pushes an image blob by blob, while other blobs are made. Its methods are safe for concurrent use. The
// caller holds the store's lock.
type Uploader struct {
	p     *pusher
	slots chan struct{} // open uploads
}

// Uploader prepares the push of an image to the repository and tag of dst.
func (c *Client) Uploader(s *store.Store, dst manifest.Name, opts PushOptions) (*Uploader, error) {
	p, err := c.preparePusher(s, dst, opts)
	if err != nil {
		return nil, fmt.Errorf("push %s: %w", dst, err)
	}
	p.notes = storedNotes{s}
	return &Uploader{p, make(chan struct{}, uploadsPerSlot*c.opts.Concurrency)}, nil
}

// Place names the registry, by its address, and the repository.
func (u *Uploader) Place() string { return u.p.r.Origin() + "/" + u.p.r.Path }

// Has reports whether the repository has a blob.
func (u *Uploader) Has(ctx context.Context, d digest.Digest, size int64) (bool, error) {
	return u.p.headBlob(ctx, blob{Descriptor: ocispec.Descriptor{Digest: d, Size: size}})
}

// Put uploads a file as a blob, unless the repository has it. An interrupted upload resumes as one of [Client.Push].
func (u *Uploader) Put(ctx context.Context, d digest.Digest, size int64, name, path string) error {
	select {
	case u.slots <- struct{}{}:
		defer func() { <-u.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	b := blob{Descriptor: ocispec.Descriptor{Digest: d, Size: size}, name: name, path: path}
	there, err := u.p.headBlob(ctx, b)
	switch {
	case err != nil:
		return fmt.Errorf("push %s: blob %s: %w", u.p.dst, d, err)
	case there:
		u.p.present(b)
		return nil
	}
	if err := u.p.upload(ctx, b); err != nil {
		return fmt.Errorf("push %s: %w", u.p.dst, err)
	}
	return nil
}

// Finish pushes the manifest, with its config, its referrers in the store, and blobs that were not put.
func (u *Uploader) Finish(ctx context.Context, encoded, config []byte) error {
	m := remote.Manifest{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(encoded), Bytes: encoded}
	if _, err := u.p.run(ctx, m, config); err != nil {
		return fmt.Errorf("push %s: %w", u.p.dst, err)
	}
	return nil
}
