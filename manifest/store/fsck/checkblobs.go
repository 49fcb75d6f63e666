package fsck

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/index"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
)

// Checked counts what [CheckBlobs] verified.
type Checked struct {
	Blobs  int
	Bytes  int64
	Absent int // blobs that a partial pull left out
}

// CheckBlobs reads all blobs that a manifest refers to, and verifies their digests and sizes. It stops at the first bad
// blob. A mismatch is a [manifest.ErrCorrupt]; a blob that does not exist is a [manifest.ErrBlobMissing], unless the
// index marks the model as partial.
func CheckBlobs(ctx context.Context, s *store.Store, m *store.Raw) (Checked, error) {
	blobs, err := manifest.Blobs(m.Bytes)
	if err != nil {
		return Checked{}, err
	}
	partial := m.Descriptor.Annotations[index.AnnotationPartial] != ""
	var (
		mu   sync.Mutex
		done Checked
	)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, b := range blobs {
		group.Go(func() error {
			err := rehash(ctx, s, b)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				done.Blobs++
				done.Bytes += b.Size
			case partial && errors.Is(err, manifest.ErrBlobMissing):
				done.Absent++
			default:
				return err
			}
			return nil
		})
	}
	return done, group.Wait()
}

func rehash(ctx context.Context, s *store.Store, b ocispec.Descriptor) error {
	if err := s.CheckBlob(b.Digest, b.Size); err != nil {
		return err
	}
	return s.HashBlob(ctx, b.Digest, nil)
}
