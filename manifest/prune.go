package manifest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// PruneOptions are those of [Store.Prune].
type PruneOptions struct {
	DryRun     bool // remove nothing
	Unfinished bool // also what interrupted runs have left to go on with, which else stays for [IngestAge]
}

// PruneReport says what a [Store.Prune] took, or would take.
type PruneReport struct {
	Items []Pruned // by kind, then by name
	Bytes int64    // of all items
}

// Pruned is one thing that Prune takes.
type Pruned struct {
	Kind  PrunedKind
	Name  string // a digest, or a path in the store's folder
	Bytes int64
}

// PrunedKind says what a [Pruned] is.
type PrunedKind string

// The kinds of what Prune takes.
const (
	PrunedBlob     PrunedKind = "blob"     // no name leads to it
	PrunedReferrer PrunedKind = "referrer" // an entry of the index whose subject has gone
	PrunedRun      PrunedKind = "run"      // what a create or pull left that was interrupted
	PrunedFile     PrunedKind = "file"     // a temporary file of a process that was killed
)

// Prune removes the blobs that no name leads to and what is left of runs that nobody will take up. It holds the store's lock
// alone, so no run is between a blob and the entry that will refer to it: when others hold it for longer than five
// seconds, the error is a [*BusyError] that names them. A dry run takes the same lock, so that it tells the truth. Where
// an entry cannot be read, what it needs is not known: nothing is removed.
func (s *Store) Prune(ctx context.Context, o PruneOptions) (PruneReport, error) {
	g, err := s.collect(ctx, o)
	if err != nil {
		return PruneReport{}, fmt.Errorf("prune: %w", err)
	}
	return g.report(), nil
}

func (s *Store) collect(ctx context.Context, o PruneOptions) (*garbage, error) {
	release, err := s.lockAll(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	s.holders() // clears notes of the dead
	g, err := s.findGarbage(ctx, o)
	if err != nil || o.DryRun {
		return g, err
	}
	return g, s.sweep(ctx, g)
}

// garbage is what a collection takes.
type garbage struct {
	dead      map[digest.Digest]bool  // referrers whose subject has gone
	blobs     map[digest.Digest]int64 // files of blobs/sha256 that nothing leads to, with their sizes
	leftovers []leftover
}

// findGarbage removes nothing. Its result holds for as long as the caller holds the store's lock alone.
func (s *Store) findGarbage(ctx context.Context, o PruneOptions) (*garbage, error) {
	idx, err := s.readIndex()
	if err != nil {
		return nil, err
	}
	live, dead, err := s.mark(ctx, idx)
	if err != nil {
		return nil, err
	}
	g := &garbage{dead: dead, blobs: map[digest.Digest]int64{}}
	left, err := s.leftovers()
	if err != nil {
		return nil, err
	}
	for _, l := range left {
		if s.stale(l, o.Unfinished) {
			g.leftovers = append(g.leftovers, l)
			continue
		}
		needs, err := s.leftoverBlobs(l)
		if err != nil {
			return nil, err
		}
		for _, d := range needs {
			live[d] = true
		}
	}
	err = s.eachBlob(ctx, func(d digest.Digest, e fs.DirEntry) error {
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
	return g, err
}

// eachBlob visits the files of blobs/sha256 that are named like a digest; others are not ours to judge.
func (s *Store) eachBlob(ctx context.Context, visit func(digest.Digest, fs.DirEntry) error) error {
	entries, err := os.ReadDir(s.path(blobsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if d := digest.NewDigestFromEncoded(digest.SHA256, e.Name()); validDigest(d) {
			if err := visit(d, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweep removes garbage. Entries go before the blobs that they lead to, so that a crash leaves no entry without its blobs.
func (s *Store) sweep(ctx context.Context, g *garbage) error {
	if len(g.dead) > 0 {
		if err := s.dropUnnamed(ctx, g.dead); err != nil {
			return err
		}
	}
	for _, l := range g.leftovers {
		s.removeLeftover(l)
	}
	var failed error
	for d := range g.blobs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := os.Remove(s.BlobPath(d)); err != nil && !errors.Is(err, fs.ErrNotExist) && failed == nil {
			failed = err
		}
	}
	return failed
}

// dropUnnamed takes referrers out of the index.
func (s *Store) dropUnnamed(ctx context.Context, dead map[digest.Digest]bool) error {
	return s.updateIndex(ctx, func(idx *ocispec.Index) error {
		idx.Manifests = slices.DeleteFunc(idx.Manifests, func(d ocispec.Descriptor) bool {
			return dead[d.Digest] && d.Annotations[ocispec.AnnotationRefName] == ""
		})
		return nil
	})
}

func (g *garbage) report() PruneReport {
	var r PruneReport
	for d := range g.dead {
		r.Items = append(r.Items, Pruned{PrunedReferrer, string(d), 0}) // its bytes are those of its blob
	}
	for d, size := range g.blobs {
		r.Items = append(r.Items, Pruned{PrunedBlob, string(d), size})
	}
	for _, l := range g.leftovers {
		kind := PrunedFile
		if l.resumable() {
			kind = PrunedRun
		}
		r.Items = append(r.Items, Pruned{kind, ingestDir + "/" + l.name, l.bytes})
	}
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
