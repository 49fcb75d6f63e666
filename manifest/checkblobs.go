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

// Checked is what [Store.CheckBlobs] has read.
type Checked struct {
	Blobs  int
	Bytes  int64
	Absent int // blobs that a partial entry was stored without
}

// CheckBlobs reads all blobs that a manifest names and compares them with their digests and sizes. The first that differs is
// an [ErrCorrupt], one that is not there an [ErrBlobMissing] unless the entry says that it is partial.
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
