package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/opencontainers/go-digest"
)

// BlobWriter writes a new blob. It hashes the bytes as they are written; the blob becomes visible with Commit. A
// BlobWriter must not be used by several goroutines at once. End it with Commit or Abort; a deferred Abort after Commit
// is a no-op.
type BlobWriter struct {
	ctx  context.Context // kept here because io.Writer's methods take none
	s    *Store
	f    *os.File // nil after Commit or Abort
	hash hash.Hash
	size int64
}

// NewBlob starts a blob. Writes fail once ctx is cancelled. The caller must hold [Store.Lock] from here to Put;
// otherwise a collection may remove the blob in between.
func (s *Store) NewBlob(ctx context.Context) (*BlobWriter, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := s.NewTemp(PartialPrefix + "*")
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

// Commit syncs the blob, makes it read-only and renames it to its digest. If the store already has the blob, and it has
// not changed since it was hashed, the existing file is kept. The directory entry becomes durable with the next
// [Store.Put], before the index refers to the blob. If Commit fails, it removes everything that was written.
func (w *BlobWriter) Commit() (digest.Digest, int64, error) {
	if w.f == nil {
		return "", 0, fmt.Errorf("commit blob: %w", fs.ErrClosed)
	}
	defer w.Abort()
	if err := w.ctx.Err(); err != nil {
		return "", 0, err
	}
	d := digest.NewDigest(digest.SHA256, w.hash)
	err := w.s.CheckBlob(d, w.size)
	there := err == nil
	if there && w.s.IsVerified(d) {
		return d, w.size, nil
	}
	// one of the wrong size is replaced, and one that may have changed
	if err != nil && !errors.Is(err, manifest.ErrBlobMissing) && !errors.Is(err, manifest.ErrCorrupt) {
		return "", 0, err
	}
	if err := w.s.MakeBlobsDir(); err != nil {
		return "", 0, fmt.Errorf("commit blob %s: %w", d, err)
	}
	if err := disk.Publish(w.f, 0o444, w.s.BlobPath(d)); err != nil {
		if there { // in use, on Windows
			return d, w.size, nil
		}
		return "", 0, fmt.Errorf("commit blob %s: %w", d, err)
	}
	w.f = nil
	w.s.NoteWritten(d)
	return d, w.size, nil
}

// Abort discards the blob. After Commit or Abort it is a no-op.
func (w *BlobWriter) Abort() error {
	if w.f == nil {
		return nil
	}
	f := w.f
	w.f = nil
	f.Close() // may already be closed by a failed Commit
	return os.Remove(f.Name())
}

// PutBytes stores a small blob in one call. The caller must hold [Store.Lock] as for [Store.NewBlob].
func (s *Store) PutBytes(ctx context.Context, b []byte) (digest.Digest, int64, error) {
	d, size := digest.FromBytes(b), int64(len(b))
	if s.CheckBlob(d, size) == nil && s.IsVerified(d) {
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

// BlobPath returns the path of a blob, whether or not the blob exists, or "" if d is not a SHA-256 digest. A blob's
// file is never modified in place, so it may be memory-mapped.
func (s *Store) BlobPath(d digest.Digest) string {
	if !manifest.ValidDigest(d) {
		return ""
	}
	return s.Path(BlobsDir, d.Encoded())
}

// OpenBlob opens a blob for reading, without verifying its digest. It waits for no pipe and follows no link. If the
// blob does not exist, the error is an [manifest.ErrBlobMissing].
func (s *Store) OpenBlob(d digest.Digest) (*os.File, error) {
	if !manifest.ValidDigest(d) {
		return nil, fmt.Errorf("blob %q: not a sha256 digest: %w", manifest.Clip(string(d)), manifest.ErrBlobMissing)
	}
	path := s.BlobPath(d)
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() { // also a link, whose file may change
		return nil, notFile(d)
	}
	var f *os.File
	if err == nil {
		f, err = place.Open(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("blob %s: %w", d, manifest.ErrBlobMissing)
	case errors.Is(err, place.ErrNotRegular):
		return nil, notFile(d)
	case err != nil:
		return nil, fmt.Errorf("blob %s: %w", d, err)
	}
	return f, nil
}

func notFile(d digest.Digest) error {
	return fmt.Errorf("blob %s is not a file: %w", d, manifest.ErrCorrupt)
}

// ReadBlob reads a whole blob and verifies its digest. A blob larger than limit bytes is a [manifest.ErrTooLarge]; a
// digest mismatch is a [manifest.ErrCorrupt].
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
		return nil, fmt.Errorf("blob %s has more than %d bytes: %w", d, limit, manifest.ErrTooLarge)
	}
	if got := digest.FromBytes(b); got != d {
		return nil, manifest.Corrupt(d, got)
	}
	return b, nil
}

// HasBlob reports whether the store has a blob with this digest and size. It does not read the blob.
func (s *Store) HasBlob(d digest.Digest, size int64) bool {
	return manifest.ValidDigest(d) && s.CheckBlob(d, size) == nil
}

// CheckBlob checks that a blob exists and has the given size, without reading it.
func (s *Store) CheckBlob(d digest.Digest, size int64) error {
	info, err := os.Lstat(s.BlobPath(d))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("blob %s: %w", d, manifest.ErrBlobMissing)
	case err != nil:
		return fmt.Errorf("blob %s: %w", d, err)
	case !info.Mode().IsRegular():
		return notFile(d)
	case info.Size() != size:
		return fmt.Errorf("blob %s has %d bytes, not %d: %w", d, info.Size(), size, manifest.ErrCorrupt)
	}
	return nil
}
