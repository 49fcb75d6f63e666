package manifest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

	"github.com/opencontainers/go-digest"
)

// BlobWriter writes a new blob. Its bytes are hashed as they come and stay out of sight until Commit. A writer belongs
// to one goroutine. End it with Commit or Abort; a deferred Abort is harmless after Commit.
type BlobWriter struct {
	ctx  context.Context // io.Writer's methods take none
	s    *Store
	f    *os.File // nil when ended
	hash hash.Hash
	size int64
}

// NewBlob starts a blob. Writes fail when ctx is cancelled. Callers hold [Store.Lock] from here to Put, else a
// collection may take the blob in between.
func (s *Store) NewBlob(ctx context.Context) (*BlobWriter, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := s.newTemp(partialPrefix + "*")
	if err != nil {
		return nil, fmt.Errorf("new blob: %w", err)
	}
	return &BlobWriter{ctx: ctx, s: s, f: f, hash: sha256.New()}, nil
}

// Write appends to the blob.
func (w *BlobWriter) Write(p []byte) (int, error) {
	if w.f == nil {
		return 0, fmt.Errorf("write blob: %w", fs.ErrClosed)
	}
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.f.Write(p)
	w.hash.Write(p[:n])
	w.size += int64(n)
	return n, err
}

// Commit syncs the blob, makes it read-only and gives it its name. A blob that the store has already is kept as it is.
// The name itself becomes durable with the next [Store.Put], before the index refers to it. When Commit fails,
// nothing of the blob stays.
func (w *BlobWriter) Commit() (digest.Digest, int64, error) {
	if w.f == nil {
		return "", 0, fmt.Errorf("commit blob: %w", fs.ErrClosed)
	}
	defer w.Abort()
	if err := w.ctx.Err(); err != nil {
		return "", 0, err
	}
	d := digest.NewDigest(digest.SHA256, w.hash)
	err := w.s.checkBlob(d, w.size)
	if err == nil {
		return d, w.size, nil
	}
	if !errors.Is(err, ErrBlobMissing) && !errors.Is(err, ErrCorrupt) { // one of the wrong size is replaced
		return "", 0, err
	}
	if err := w.s.makeBlobsDir(); err != nil {
		return "", 0, fmt.Errorf("commit blob %s: %w", d, err)
	}
	if err := publish(w.f, 0o444, w.s.BlobPath(d)); err != nil {
		return "", 0, fmt.Errorf("commit blob %s: %w", d, err)
	}
	w.f = nil
	return d, w.size, nil
}

// Abort gives the blob up. After Commit or Abort it does nothing.
func (w *BlobWriter) Abort() error {
	if w.f == nil {
		return nil
	}
	f := w.f
	w.f = nil
	f.Close() // may be closed already, by a Commit that failed
	return os.Remove(f.Name())
}

// PutBytes stores a small blob in one call. What [Store.NewBlob] says about locks holds here too.
func (s *Store) PutBytes(ctx context.Context, b []byte) (digest.Digest, int64, error) {
	d, size := digest.FromBytes(b), int64(len(b))
	if s.checkBlob(d, size) == nil {
		return d, size, nil
	}
	w, err := s.NewBlob(ctx)
	if err != nil {
		return "", 0, err
	}
	defer w.Abort()
	if _, err := w.Write(b); err != nil {
		return "", 0, fmt.Errorf("write blob %s: %w", d, err)
	}
	return w.Commit()
}

// BlobPath is where a blob lies, whether it is there or not; empty for what is not a sha256 digest. The file is never
// changed in place, so it may be mapped.
func (s *Store) BlobPath(d digest.Digest) string {
	if !validDigest(d) {
		return ""
	}
	return s.path(blobsDir, d.Encoded())
}

// OpenBlob opens a blob for reading. Its bytes are not verified. One that is not there is an [ErrBlobMissing].
func (s *Store) OpenBlob(d digest.Digest) (*os.File, error) {
	if !validDigest(d) {
		return nil, fmt.Errorf("blob %q: not a sha256 digest: %w", clip(string(d)), ErrBlobMissing)
	}
	f, err := os.Open(s.BlobPath(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("blob %s: %w", d, ErrBlobMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", d, err)
	}
	return f, nil
}

// ReadBlob reads a whole blob of at most limit bytes ([ErrTooLarge]) and verifies its digest ([ErrCorrupt]).
func (s *Store) ReadBlob(d digest.Digest, limit int64) ([]byte, error) {
	f, err := s.OpenBlob(d)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", d, err)
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("blob %s has more than %d bytes: %w", d, limit, ErrTooLarge)
	}
	if got := digest.FromBytes(b); got != d {
		return nil, corrupt(d, got)
	}
	return b, nil
}

// HasBlob reports whether the store has a blob of this size. Its bytes are not read.
func (s *Store) HasBlob(d digest.Digest, size int64) bool {
	return validDigest(d) && s.checkBlob(d, size) == nil
}

// checkBlob tells whether a blob is there with the right size, without reading it.
func (s *Store) checkBlob(d digest.Digest, size int64) error {
	info, err := os.Lstat(s.BlobPath(d))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("blob %s: %w", d, ErrBlobMissing)
	case err != nil:
		return fmt.Errorf("blob %s: %w", d, err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("blob %s is not a file: %w", d, ErrCorrupt)
	case info.Size() != size:
		return fmt.Errorf("blob %s has %d bytes, not %d: %w", d, info.Size(), size, ErrCorrupt)
	}
	return nil
}
