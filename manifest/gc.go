package manifest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Remove removes names, then the blobs that are no longer reachable from the index. If a name does not exist, it
// removes nothing and returns a [*NotFoundError]. If another process is writing to the store, or an index entry cannot
// be read, it removes the names, keeps the blobs and returns a [*KeptError]. The caller must not hold [Store.Lock].
func (s *Store) Remove(ctx context.Context, names ...Name) error {
	garbage := false // a removed entry was the last one for its manifest
	err := s.updateIndex(ctx, func(idx *ocispec.Index) error {
		drop := make([]bool, len(idx.Manifests))
		for _, name := range names {
			found := false
			for i, d := range idx.Manifests {
				if n, ok := entryName(d); ok && matches(d, n, withTag(name)) {
					drop[i], found = true, true
				}
			}
			if !found {
				return notFound(*idx, name)
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
	if _, err := s.collect(ctx, PruneOptions{}); err != nil {
		return &KeptError{Names: names, Cause: err}
	}
	return nil
}

// marks is the state of the mark phase of a collection.
type marks struct {
	live    map[digest.Digest]bool // reachable blobs
	visited map[digest.Digest]bool // manifests whose references are marked
}

// mark returns the live blobs and the dead referrers. The roots are named entries, unnamed entries without a subject
// (written by other tools), and unnamed entries whose subject is live. dead contains the referrers whose subject is not
// live. An entry that cannot be read is an error, because the blobs it refers to are unknown; only unnamed entries may
// lack their manifest.
func (s *Store) mark(ctx context.Context, idx ocispec.Index) (live, dead map[digest.Digest]bool, err error) {
	m := marks{live: map[digest.Digest]bool{}, visited: map[digest.Digest]bool{}}
	type referrer struct {
		desc ocispec.Descriptor
		doc  references
	}
	var waiting []referrer
	for _, d := range idx.Manifests {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		named := d.Annotations[ocispec.AnnotationRefName] != ""
		doc, err := s.readReferences(d)
		if err != nil && (named || !errors.Is(err, ErrBlobMissing)) {
			return nil, nil, fmt.Errorf("cannot determine which blobs %s refers to; remove it first: %w", label(d), err)
		}
		if !named && doc.Subject != nil {
			waiting = append(waiting, referrer{d, doc})
			continue
		}
		if err := s.markFrom(d, doc, m); err != nil {
			return nil, nil, err
		}
	}
	for before := len(waiting) + 1; len(waiting) < before; { // a referrer may have referrers
		before = len(waiting)
		var still []referrer
		for _, r := range waiting {
			if !m.live[r.doc.Subject.Digest] {
				still = append(still, r)
			} else if err := s.markFrom(r.desc, r.doc, m); err != nil {
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
func (s *Store) markFrom(d ocispec.Descriptor, doc references, m marks) error {
	m.live[d.Digest] = true
	m.visited[d.Digest] = true
	if doc.Config != nil {
		m.live[doc.Config.Digest] = true
	}
	for _, l := range slices.Concat(doc.Layers, doc.Blobs) {
		m.live[l.Digest] = true
	}
	for _, child := range doc.Manifests {
		if m.visited[child.Digest] {
			continue
		}
		childDoc, err := s.readReferences(child)
		if err != nil && !errors.Is(err, ErrBlobMissing) {
			return fmt.Errorf("cannot determine which blobs %s refers to; remove it first: %w", label(d), err)
		}
		if err := s.markFrom(child, childDoc, m); err != nil {
			return err
		}
	}
	return nil
}
