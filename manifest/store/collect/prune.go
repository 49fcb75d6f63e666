package collect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// PruneOptions are options of [Prune].
type PruneOptions struct {
	DryRun     bool // report only; remove nothing
	KeepScores bool // keep cached scores
	scores     bool // also remove them
	Unfinished bool // also remove the resumable state of interrupted runs younger than [ingest.Age]
}

// PruneReport lists what a [Prune] removed, or would remove.
type PruneReport struct {
	Items []Pruned // sorted by kind, then by name
	Bytes int64    // of all items
}

// Pruned is an item that Prune removes.
type Pruned struct {
	Kind  PrunedKind
	Name  string // a digest, or a path relative to the store
	Bytes int64
}

// PrunedKind is the kind of a [Pruned].
type PrunedKind string

// The kinds of items that Prune removes.
const (
	PrunedBlob     PrunedKind = "blob"     // a blob that is not reachable from the index
	PrunedReferrer PrunedKind = "referrer" // an index entry whose subject no longer exists
	PrunedRun      PrunedKind = "run"      // state of an interrupted create, push or pull, or an upload for a create
	PrunedFile     PrunedKind = "file"     // a temporary file of a killed process
	PrunedScores   PrunedKind = "scores"   // cached logits of a comparison's base
)

// Prune removes unreachable blobs and stale state of interrupted runs. It holds the store's lock exclusively, so that
// no run is between writing a blob and setting the entry that refers to it. If other processes hold the lock for longer
// than five seconds, it returns a [*lock.BusyError] that names them. A dry run takes the same lock, so its result is
// exact. If an index entry cannot be read, Prune removes nothing, because the blobs it refers to are unknown.
func Prune(ctx context.Context, s *store.Store, o PruneOptions) (PruneReport, error) {
	o.scores = !o.KeepScores
	g, err := run(ctx, s, o)
	if err != nil {
		return PruneReport{}, fmt.Errorf("prune: %w", err)
	}
	return g.report(), nil
}

// Drop removes those of some blobs that nothing refers to. It waits for other processes as [Prune] does.
func Drop(ctx context.Context, s *store.Store, blobs []ocispec.Descriptor) error {
	release, err := s.Locks().Exclusive(ctx)
	if err != nil {
		return err
	}
	defer release()
	g, err := findGarbage(ctx, s, PruneOptions{})
	if err != nil {
		return err
	}
	dropped := &garbage{blobs: map[digest.Digest]int64{}}
	for _, b := range blobs {
		if size, ok := g.blobs[b.Digest]; ok {
			dropped.blobs[b.Digest] = size
		}
	}
	return sweep(ctx, s, dropped)
}

func run(ctx context.Context, s *store.Store, o PruneOptions) (*garbage, error) {
	release, err := s.Locks().Exclusive(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	s.Locks().Holders() // removes notes of dead processes
	g, err := findGarbage(ctx, s, o)
	if err != nil || o.DryRun {
		return g, err
	}
	return g, sweep(ctx, s, g)
}

// garbage is what a collection removes.
type garbage struct {
	dead      map[digest.Digest]bool  // referrers whose subject no longer exists
	blobs     map[digest.Digest]int64 // unreachable files in blobs/sha256, with their sizes
	leftovers []ingest.Leftover
	scores    []Pruned
}

// findGarbage removes nothing. Its result is valid while the caller holds the store's lock exclusively.
func findGarbage(ctx context.Context, s *store.Store, o PruneOptions) (*garbage, error) {
	idx, err := s.ReadIndex()
	if err != nil {
		return nil, err
	}
	live, dead, err := mark(ctx, s, idx)
	if err != nil {
		return nil, err
	}
	g := &garbage{dead: dead, blobs: map[digest.Digest]int64{}}
	left, err := ingest.Leftovers(s)
	if err != nil {
		return nil, err
	}
	used, err := ingest.Used(s, left)
	if err != nil {
		return nil, err
	}
	for _, l := range left {
		if ingest.Stale(s, l, o.Unfinished, used) {
			g.leftovers = append(g.leftovers, l)
			continue
		}
		needs, err := ingest.LeftoverBlobs(s, l)
		if err != nil {
			return nil, err
		}
		for _, d := range needs {
			live[d] = true
		}
	}
	err = eachBlob(ctx, s, func(d digest.Digest, e fs.DirEntry) error {
		if live[d] {
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			g.blobs[d] = info.Size()
		}
		return err
	})
	if err == nil && o.scores {
		g.scores, err = scores(s)
	}
	return g, err
}

// scores lists the files with cached scores.
func scores(s *store.Store) (list []Pruned, err error) {
	entries, err := os.ReadDir(s.Path(store.ScoresDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			list = append(list, Pruned{PrunedScores, store.ScoresDir + "/" + e.Name(), info.Size()})
		}
	}
	return list, nil
}

// eachBlob visits the files in blobs/sha256 whose name is a digest. It ignores others, which this program did not
// write.
func eachBlob(ctx context.Context, s *store.Store, visit func(digest.Digest, fs.DirEntry) error) error {
	entries, err := os.ReadDir(s.Path(store.BlobsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if d := digest.NewDigestFromEncoded(digest.SHA256, e.Name()); manifest.ValidDigest(d) {
			if err := visit(d, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweep removes garbage. It removes index entries before the blobs they refer to, so that a crash leaves no dangling
// entry.
func sweep(ctx context.Context, s *store.Store, g *garbage) error {
	if len(g.dead) > 0 {
		if err := dropUnnamed(ctx, s, g.dead); err != nil {
			return err
		}
	}
	for _, l := range g.leftovers {
		ingest.RemoveLeftover(s, l)
	}
	var failed error
	for _, f := range g.scores {
		if err := os.Remove(s.Path(f.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) && failed == nil {
			failed = err
		}
	}
	for d := range g.blobs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := os.Remove(s.BlobPath(d)); err != nil && !errors.Is(err, fs.ErrNotExist) && failed == nil {
			failed = err
		}
	}
	if failed == nil && len(g.blobs) > 0 {
		failed = s.DropNotes()
	}
	return failed
}

// dropUnnamed removes referrers from the index.
func dropUnnamed(ctx context.Context, s *store.Store, dead map[digest.Digest]bool) error {
	return s.UpdateIndex(ctx, func(idx *ocispec.Index) error {
		idx.Manifests = slices.DeleteFunc(idx.Manifests, func(d ocispec.Descriptor) bool {
			return dead[d.Digest] && d.Annotations[ocispec.AnnotationRefName] == ""
		})
		return nil
	})
}

func (g *garbage) report() PruneReport {
	var r PruneReport
	for d := range g.dead {
		r.Items = append(r.Items, Pruned{PrunedReferrer, string(d), 0}) // its size is counted with its blob
	}
	for d, size := range g.blobs {
		r.Items = append(r.Items, Pruned{PrunedBlob, string(d), size})
	}
	for _, l := range g.leftovers {
		kind := PrunedFile
		if l.Resumable() {
			kind = PrunedRun
		}
		r.Items = append(r.Items, Pruned{kind, store.IngestDir + "/" + l.Name, l.Bytes})
	}
	r.Items = append(r.Items, g.scores...)
	slices.SortFunc(r.Items, func(a, b Pruned) int {
		if a.Kind != b.Kind {
			return strings.Compare(string(a.Kind), string(b.Kind))
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, item := range r.Items {
		r.Bytes += item.Bytes
	}
	return r
}
