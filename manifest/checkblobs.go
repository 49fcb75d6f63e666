package manifest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
)

// Checked counts what [Store.CheckBlobs] verified.
type Checked struct {
	Blobs  int
	Bytes  int64
	Absent int // blobs that a partial pull left out
}

// CheckBlobs reads all blobs that a manifest refers to, and verifies their digests and sizes. It stops at the first bad
// blob. A mismatch is an [ErrCorrupt]; a blob that does not exist is an [ErrBlobMissing], unless the index marks the
// model as partial.
func (s *Store) CheckBlobs(ctx context.Context, m *Raw) (Checked, error) {
	blobs, err := Blobs(m.Bytes)
	if err != nil {
		return Checked{}, err
	}
	partial := m.Descriptor.Annotations[annotationPartial] != ""
	var (
		mu   sync.Mutex
		done Checked
	)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, b := range blobs {
		group.Go(func() error {
			err := s.rehash(ctx, b)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				done.Blobs++
				done.Bytes += b.Size
			case partial && errors.Is(err, ErrBlobMissing):
				done.Absent++
			default:
				return err
			}
			return nil
		})
	}
	return done, group.Wait()
}

func (s *Store) rehash(ctx context.Context, b ocispec.Descriptor) error {
	if err := s.checkBlob(b.Digest, b.Size); err != nil {
		return err
	}
	got, err := hashFile(ctx, s.BlobPath(b.Digest), func(int64) {})
	if err != nil {
		return fmt.Errorf("blob %s: %w", b.Digest, err)
	}
	if got != b.Digest {
		return corrupt(b.Digest, got)
	}
	return nil
}
