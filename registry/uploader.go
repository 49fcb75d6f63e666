package registry

import (
	"context"
	"errors"
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
	p.records = s
	return &Uploader{p, make(chan struct{}, uploadsPerSlot*c.Concurrency(dst.Host))}, nil
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

// Streams reports whether [Uploader.Stream] can be used: not with a registry that takes a blob only in one request,
// whose URL has the digest, or in chunks that are larger than the pieces.
func (u *Uploader) Streams() bool {
	can := u.p.r.Abilities()
	return !can.NoChunks && !can.NoPieces
}

// Stream uploads a blob of a known size while it is written, as the files that next returns. When next is called again,
// the registry has the file before, which is needed no more. After the last one, next returns "" and the digest. If
// again is true, the registry lost bytes that the files no longer have, or cannot do this: the blob has to be made
// again.
func (u *Uploader) Stream(ctx context.Context, size int64, name string,
	next func(context.Context) (path string, bytes int64, d digest.Digest, err error)) (again bool, err error) {
	select {
	case u.slots <- struct{}{}:
		defer func() { <-u.slots }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	up := &upload{push: u.p, blob: blob{Descriptor: ocispec.Descriptor{Size: size}, name: name}, piece: &piece{}}
	for err == nil && up.blob.Digest == "" {
		at := *up.piece
		at.begin = at.end
		var n int64
		at.path, n, up.blob.Digest, err = next(ctx)
		at.end += n
		if err == nil {
			up.piece = &at
			_, err = up.run(ctx)
		}
	}
	if err != nil {
		up.abandon(context.WithoutCancel(ctx))
		return errors.Is(err, errPieceGone), fmt.Errorf("push %s: %s: %w", u.p.dst, name, err)
	}
	up.emit(Done, size, nil)
	return false, nil
}

// piece is a file with some bytes of a blob whose other bytes are not at hand.
type piece struct {
	path       string
	begin, end int64
}

// errPieceGone means that a registry needs bytes of a blob that are not at hand any more.
var errPieceGone = errors.New("the registry lost the beginning of the blob")

// gone reports whether the upload cannot go on: the bytes at its offset are not at hand any more, or the registry needs
// more of them at a time.
func (u *upload) gone() bool {
	if u.piece == nil {
		return false
	}
	if u.chunkMin > u.has() && u.piece.end < u.blob.Size {
		u.push.r.Learn(func(a *remote.Abilities) { a.NoPieces = true })
	}
	can := u.push.r.Abilities()
	return u.offset < u.piece.begin || can.NoChunks || can.NoPieces
}

// has returns how many bytes from the upload's offset on are at hand.
func (u *upload) has() int64 {
	if u.piece != nil {
		return u.piece.end - u.offset
	}
	return u.blob.Size - u.offset
}

// Finish pushes the manifest, with its config, its referrers in the store, and blobs that were not put.
func (u *Uploader) Finish(ctx context.Context, encoded, config []byte) error {
	m := remote.Manifest{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(encoded), Bytes: encoded}
	if _, err := u.p.run(ctx, m, config); err != nil {
		return fmt.Errorf("push %s: %w", u.p.dst, err)
	}
	return nil
}
