package registry

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry/fetch"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Documents is where manifests come from: a store, a repository, or a layout on disk.
type Documents interface {
	// Manifest returns a manifest. The error is a [manifest.ErrBlobMissing] or [remote.ErrNotFound] if there is none.
	Manifest(ctx context.Context, d digest.Digest) ([]byte, error)
	// Referrers lists the manifests with this subject.
	Referrers(ctx context.Context, subject digest.Digest) ([]ocispec.Descriptor, error)
}

// Files are documents whose blobs are in files.
type Files interface {
	Documents
	// File returns the file that has a blob, and where the blob begins in it. The file need not be intact.
	File(d ocispec.Descriptor) (path string, offset int64, err error)
}

// Stored are the documents of a store.
type Stored struct{ *store.Store }

// Hold locks the store, so that no collection removes what is read from it. A store that cannot be written to is not
// locked, since it is not collected either.
func (s Stored) Hold(ctx context.Context) (release func(), writable bool, err error) {
	release, err = s.Lock(ctx)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return func() {}, false, nil
	}
	return release, err == nil, err
}

// Manifest reads a manifest.
func (s Stored) Manifest(_ context.Context, d digest.Digest) ([]byte, error) {
	return s.ReadBlob(d, manifest.MaxManifestSize)
}

// Referrers lists the manifests with this subject.
func (s Stored) Referrers(ctx context.Context, subject digest.Digest) ([]ocispec.Descriptor, error) {
	return s.Store.Referrers(ctx, subject, "")
}

// Documents returns the manifests of a repository, for the copy of one image: see [limits.CopyManifests].
func (c *Client) Documents(r *remote.Repository) Documents { return &copySource{c: c, r: r} }

// OpenBlob returns a reader of a blob of a repository. After a failure, it continues where it was. If the content has
// another digest, a [remote.ErrDigest] comes instead of the last bytes.
func (c *Client) OpenBlob(ctx context.Context, r *remote.Repository, d ocispec.Descriptor) io.ReadCloser {
	return fetch.Copy(r, c.tune, fetch.Blob{Descriptor: d, Label: BlobName(d)}).Open(ctx, 0, d.Size)
}

// Image is an image with everything that belongs to it.
type Image struct {
	Manifests []remote.Manifest    // those that an index lists come before it, so the image's own is the last
	Referrers []remote.Manifest    // a subject comes before its referrers
	Blobs     []ocispec.Descriptor // of all manifests, each digest once, the largest first
}

// Gather reads the manifests of an image and of its referrers. Of the options, only NoReferrers is used.
func (c *Client) Gather(
	ctx context.Context, from Documents, root remote.Manifest, opts PushOptions,
) (*Image, error) {
	p := &pusher{c: c, from: from, opts: opts}
	docs, err := p.gather(ctx, nil, root, 0)
	if err != nil {
		return nil, err
	}
	attached, unread, err := p.attached(ctx, root.Digest)
	if err == nil {
		err = p.skip(unread)
	}
	if err != nil {
		return nil, err
	}
	x := &Image{Manifests: docs, Referrers: manifestsOf(attached)}
	blobs, err := blobsOf(append(docs[:len(docs):len(docs)], x.Referrers...))
	for _, b := range blobs {
		x.Blobs = append(x.Blobs, b.Descriptor)
	}
	return x, err
}

// PushFiles pushes an image whose blobs are in files, with its referrers, as [Client.Push] does. Each blob that the
// registry lacks is hashed before it is sent. The options' Format must be empty.
func (c *Client) PushFiles(
	ctx context.Context, from Files, root remote.Manifest, dst manifest.Name, opts PushOptions,
) (digest.Digest, error) {
	p, err := c.preparePusher(nil, dst, opts)
	if err != nil {
		return "", err
	}
	p.from, p.files = from, from
	return p.run(ctx, root, nil)
}

// Resend uploads a blob of the store to the repository of dst, whether the registry says that it has the blob or not,
// and mounts it from nowhere.
func (c *Client) Resend(ctx context.Context, s *store.Store, dst manifest.Name, d ocispec.Descriptor) error {
	p, release, err := c.newPusher(ctx, s, dst, PushOptions{})
	if err != nil {
		return err
	}
	defer release()
	p.resend = true
	return p.upload(ctx, blob{Descriptor: d, name: BlobName(d)})
}

// verifyFile compares the digest of a blob's file with the blob's.
func verifyFile(ctx context.Context, b blob) error {
	f, err := os.Open(b.path)
	if err != nil {
		return err
	}
	defer f.Close()
	return verify(ctx, io.NewSectionReader(f, b.at, b.Size), b.Digest)
}

// verify compares the digest of what a reader has with the wanted one.
func verify(ctx context.Context, r io.Reader, want digest.Digest) error {
	h := sha256.New()
	for buf := make([]byte, maxPiece); ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := r.Read(buf)
		h.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if got := digest.NewDigest(digest.SHA256, h); got != want {
		return manifest.Corrupt(want, got)
	}
	return nil
}

// Emit passes an event to the client's receiver, in turn with its own.
func (c *Client) Emit(e Event) { c.emit(e) }
