package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/verified"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
)

// VerifiedFile notes which blobs have not changed since their bytes were hashed.
const VerifiedFile = "verified"

// HashBlob reads a blob, compares it with its digest, and notes a match. progress is called with the bytes of each
// read; it may be nil. Another content is a [manifest.ErrCorrupt].
func (s *Store) HashBlob(ctx context.Context, d digest.Digest, progress func(n int64)) error {
	f, err := s.OpenBlob(d)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return s.hash(ctx, d, f, info, progress)
}

// hash is HashBlob of an open file as info describes it.
func (s *Store) hash(ctx context.Context, d digest.Digest, f *os.File, info fs.FileInfo, progress func(int64)) error {
	h := sha256.New()
	buf := make([]byte, min(info.Size()+1, 1<<20)) // most blobs are small
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		if n > 0 && progress != nil {
			progress(int64(n))
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("blob %s: %w", d, err)
		}
	}
	if got := digest.NewDigest(digest.SHA256, h); got != d {
		return manifest.Corrupt(d, got)
	}
	s.verified.Add(verified.Noted{Digest: d.Encoded(), Info: info})
	return nil
}

// VerifyBlobs compares blobs with their digests, unless this was done since their last change: the first time it takes
// as long as reading them, then hardly any time. It stops at the first bad blob. A mismatch is a [manifest.ErrCorrupt].
// Blobs that do not exist are left to their reader.
func (s *Store) VerifyBlobs(ctx context.Context, blobs ...ocispec.Descriptor) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, b := range blobs {
		group.Go(func() error { return s.verify(ctx, b) })
	}
	return group.Wait()
}

func (s *Store) verify(ctx context.Context, b ocispec.Descriptor) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := s.OpenBlob(b.Digest)
	if errors.Is(err, manifest.ErrBlobMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case info.Size() != b.Size:
		return fmt.Errorf("blob %s has %d bytes, not %d: %w", b.Digest, info.Size(), b.Size, manifest.ErrCorrupt)
	case s.verified.Has(verified.Noted{Digest: b.Digest.Encoded(), Info: info}):
		return nil
	}
	return s.hash(ctx, b.Digest, f, info, nil)
}

// IsVerified reports whether a blob exists, and was compared with its digest since its last change.
func (s *Store) IsVerified(d digest.Digest) bool {
	info, err := os.Lstat(s.BlobPath(d))
	return err == nil && info.Mode().IsRegular() && s.verified.Has(verified.Noted{Digest: d.Encoded(), Info: info})
}

// NoteWritten notes blobs that this process has hashed and then renamed into the store.
func (s *Store) NoteWritten(blobs ...digest.Digest) {
	var list []verified.Noted
	for _, d := range blobs {
		if info, err := os.Lstat(s.BlobPath(d)); err == nil && info.Mode().IsRegular() {
			list = append(list, verified.Noted{Digest: d.Encoded(), Info: info})
		}
	}
	s.verified.AddWritten(list...)
}

// DropNotes drops the notes of blobs that the store no longer has, if they are many.
func (s *Store) DropNotes() error {
	return s.verified.Keep(func(hex string) bool {
		_, err := os.Lstat(s.BlobPath(digest.NewDigestFromEncoded(digest.SHA256, hex)))
		return err == nil
	}, func(text []byte) error { return s.replaceFile(VerifiedFile, text) })
}
