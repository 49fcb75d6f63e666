package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/index"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Remove removes names, then the blobs that are no longer reachable from the index. If a name does not exist, it
// removes nothing and returns a [*index.NotFoundError]. If another process is writing to the store, or an index entry
// cannot be read, it removes the names, keeps the blobs and returns a [*KeptError]. The caller must not hold
// [store.Store.Lock].
func Remove(ctx context.Context, s *store.Store, names ...manifest.Name) error {
	garbage := false // a removed entry was the last one for its manifest
	err := s.UpdateIndex(ctx, func(idx *ocispec.Index) error {
		drop := make([]bool, len(idx.Manifests))
		found := index.NewFinder(*idx)
		for _, name := range names {
			at := found.All(name)
			if len(at) == 0 {
				return index.NotFound(*idx, name)
			}
			for _, i := range at {
				drop[i] = true
			}
		}
		left := map[digest.Digest]bool{}
		var kept []ocispec.Descriptor
		for i, d := range idx.Manifests {
			if !drop[i] {
				left[d.Digest] = true
				kept = append(kept, d)
			}
		}
		for i, d := range idx.Manifests {
			garbage = garbage || drop[i] && !left[d.Digest]
		}
		idx.Manifests = kept
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	if !garbage {
		return nil
	}
	if _, err := run(ctx, s, PruneOptions{}); err != nil {
		return &KeptError{Names: names, Cause: err}
	}
	return nil
}

// marks is the state of the mark phase of a collection.
type marks struct {
	live    map[digest.Digest]bool // reachable blobs
	visited map[visited]bool       // manifests whose references are marked
}

// visited is a manifest that was read. What it may refer to depends on its type, which an index may have wrong.
type visited struct {
	digest    digest.Digest
	mediaType string
}

// mark returns the live blobs and the dead referrers. The roots are named entries, unnamed entries without a subject
// (written by other tools), and unnamed entries whose subject is live. dead contains the referrers whose subject is not
// live. An entry that cannot be read is an error, because the blobs it refers to are unknown; only unnamed entries may
// lack their manifest.
func mark(ctx context.Context, s *store.Store, idx ocispec.Index) (live, dead map[digest.Digest]bool, err error) {
	m := marks{live: map[digest.Digest]bool{}, visited: map[visited]bool{}}
	type referrer struct {
		desc ocispec.Descriptor
		doc  manifest.References
	}
	var waiting []referrer
	for _, d := range idx.Manifests {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if !manifest.ValidDigest(d.Digest) {
			return nil, nil, fmt.Errorf("cannot determine which blobs %s refers to: its digest %q is not a sha256 digest: %w",
				index.Label(d), manifest.Clip(string(d.Digest)), manifest.ErrIndex)
		}
		if m.visited[visited{d.Digest, d.MediaType}] { // another name of the same image
			continue
		}
		named := d.Annotations[ocispec.AnnotationRefName] != ""
		doc, err := s.References(d)
		if err != nil && (named || !errors.Is(err, manifest.ErrBlobMissing)) {
			return nil, nil, fmt.Errorf("cannot determine which blobs %s refers to; remove it first: %w", index.Label(d), err)
		}
		if !named && doc.Subject != nil {
			waiting = append(waiting, referrer{d, doc})
			continue
		}
		if err := markFrom(s, d, doc, m); err != nil {
			return nil, nil, err
		}
	}
	for before := len(waiting) + 1; len(waiting) < before; { // a referrer may have referrers
		before = len(waiting)
		var still []referrer
		for _, r := range waiting {
			if !m.live[r.doc.Subject.Digest] {
				still = append(still, r)
			} else if err := markFrom(s, r.desc, r.doc, m); err != nil {
				return nil, nil, err
			}
		}
		waiting = still
	}
	dead = map[digest.Digest]bool{}
	for _, r := range waiting {
		if !m.live[r.desc.Digest] {
			dead[r.desc.Digest] = true
		}
	}
	return m.live, dead, nil
}

// markFrom marks a manifest and everything it refers to. Children of an index may be absent, because tools can copy a
// single platform.
func markFrom(s *store.Store, d ocispec.Descriptor, doc manifest.References, m marks) error {
	m.live[d.Digest] = true
	m.visited[visited{d.Digest, d.MediaType}] = true
	if doc.Config != nil {
		m.live[doc.Config.Digest] = true
	}
	for _, l := range slices.Concat(doc.Layers, doc.Blobs) {
		m.live[l.Digest] = true
	}
	for _, child := range doc.Manifests {
		if m.visited[visited{child.Digest, child.MediaType}] {
			continue
		}
		if !manifest.ValidDigest(child.Digest) {
			return fmt.Errorf("cannot determine which blobs %s refers to: %q in it is not a sha256 digest; remove it first: %w",
				index.Label(d), manifest.Clip(string(child.Digest)), manifest.ErrInvalidManifest)
		}
		childDoc, err := s.References(child)
		if err != nil && !errors.Is(err, manifest.ErrBlobMissing) {
			return fmt.Errorf("cannot determine which blobs %s refers to; remove it first: %w", index.Label(d), err)
		}
		if err := markFrom(s, child, childDoc, m); err != nil {
			return err
		}
	}
	return nil
}
