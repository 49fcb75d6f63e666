package collect

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"
)

// Usage describes the disk usage of a store. Sizes are in bytes.
type Usage struct {
	Models           int   // names
	Blobs            int   // number of files, including manifests and configs
	Bytes            int64 // of all blobs
	SharedBytes      int64 // of blobs that several names share, each counted once
	SavedBytes       int64 // additional bytes the names would need without sharing
	ReclaimableBlobs int   // unreachable blobs
	ReclaimableBytes int64 // of these blobs and of stale files in ingest/
	Unfinished       int   // interrupted and running creates, pulls and pushes
	UnfinishedBytes  int64
	ScoresBytes      int64  // cached logits of comparisons' bases
	QuarantinedBytes int64  // corrupt files that Fsck moved to quarantine/
	Damage           string // why Prune would remove nothing; empty if it would work
}

// UsageOf returns the store's disk usage. It takes no lock, so the result may include the partial effects of concurrent
// operations.
func UsageOf(ctx context.Context, s *store.Store) (Usage, error) {
	all, err := s.Listing(ctx)
	if err != nil {
		return Usage{}, err
	}
	images, err := listNeeds(ctx, all)
	if err != nil {
		return Usage{}, err
	}
	u := Usage{Models: len(all.Models)}
	uses := countUses(images)
	for _, use := range uses {
		u.SavedBytes += use.size * int64(use.names-1)
		if use.names > 1 {
			u.SharedBytes += use.size
		}
	}
	if err := eachBlob(ctx, s, func(_ digest.Digest, e fs.DirEntry) error {
		if info, err := e.Info(); err == nil {
			u.Blobs++
			u.Bytes += info.Size()
		}
		return nil
	}); err != nil {
		return Usage{}, err
	}
	left, err := ingest.Leftovers(s)
	if err != nil {
		return Usage{}, err
	}
	for _, l := range left {
		if l.Resumable() {
			u.Unfinished++
			u.UnfinishedBytes += l.Bytes
		}
	}
	if g, err := findGarbage(ctx, s, PruneOptions{}); err != nil {
		if ctx.Err() != nil {
			return Usage{}, err
		}
		u.Damage = err.Error()
	} else {
		u.ReclaimableBlobs, u.ReclaimableBytes = len(g.blobs), g.report().Bytes
	}
	cached, err := scores(s)
	if err != nil {
		return u, err
	}
	for _, f := range cached {
		u.ScoresBytes += f.Bytes
	}
	u.QuarantinedBytes, err = quarantined(s)
	return u, err
}

func quarantined(s *store.Store) (bytes int64, err error) {
	entries, err := os.ReadDir(s.Path(store.QuarantineDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			bytes += info.Size()
		}
	}
	return bytes, nil
}

// Share sets [store.Summary.Shared] of the listed models, for which it reads every manifest. It also fills in sizes
// that the index lacks, as in entries written by other tools.
func Share(ctx context.Context, l *store.Listing) error {
	images, err := listNeeds(ctx, l)
	if err != nil {
		return err
	}
	models := l.Models
	uses := countUses(images)
	for _, image := range images {
		var total, shared int64
		for d, size := range image.blobs {
			total += size
			if uses[d].names > 1 {
				shared += size
			}
		}
		for _, i := range image.models {
			models[i].Shared = shared
			if models[i].Size == 0 {
				models[i].Size = total
			}
		}
	}
	return nil
}

// image is a stored manifest.
type image struct {
	models []int                   // its names, as indexes in the list of models
	blobs  map[digest.Digest]int64 // sizes of the blobs that it refers to, and its own
}

// listNeeds returns the images of the listed models, each of which is read once. A manifest that is damaged or was just
// removed contributes nothing. Blobs that a partial pull left out are not included.
func listNeeds(ctx context.Context, l *store.Listing) (map[digest.Digest]*image, error) {
	s, models := l.Store, l.Models
	images := make(map[digest.Digest]*image, len(models))
	for i, m := range models {
		if images[m.Digest] == nil {
			images[m.Digest] = &image{blobs: map[digest.Digest]int64{}}
		}
		images[m.Digest].models = append(images[m.Digest].models, i)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for d, of := range images {
		group.Go(func() error {
			addNeeds(s, d, of.blobs, 0)
			if models[of.models[0]].Partial > 0 {
				for d, size := range of.blobs {
					if s.CheckBlob(d, size) != nil {
						delete(of.blobs, d)
					}
				}
			}
			return ctx.Err()
		})
	}
	return images, group.Wait()
}

// addNeeds adds the blobs that a manifest refers to, and the manifest itself.
func addNeeds(s *store.Store, d digest.Digest, blobs map[digest.Digest]int64, depth int) {
	if _, seen := blobs[d]; seen || depth > manifest.MaxIndexDepth {
		return
	}
	b, err := s.ReadBlob(d, manifest.MaxManifestSize)
	if err != nil {
		return
	}
	blobs[d] = int64(len(b))
	scanLinks(b, func(l link) {
		if l.manifest {
			addNeeds(s, l.digest, blobs, depth+1)
		} else {
			blobs[l.digest] = l.size
		}
	})
}

type use struct {
	names int
	size  int64
}

func countUses(images map[digest.Digest]*image) map[digest.Digest]use {
	uses := map[digest.Digest]use{}
	for _, of := range images {
		for d, size := range of.blobs {
			uses[d] = use{uses[d].names + len(of.models), size}
		}
	}
	return uses
}
