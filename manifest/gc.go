package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Docker's names for the manifests that OCI tools may copy into the layout.
const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// Remove drops names, then the blobs that nobody else needs: those that no entry of the index leads to. It drops all of
// the names or, when one is not there ([*NotFoundError]), none. When somebody is writing to the store, or not all entries
// can be read, the names are gone, the blobs stay, and the error is a [*KeptError]. Do not call it while holding [Store.Lock].
func (s *Store) Remove(ctx context.Context, names ...Name) error {
	garbage := false // no other entry has one of the manifests
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

// marks is what a collection knows: the blobs that are needed, and the manifests whose needs are among them.
type marks struct {
	live    map[digest.Digest]bool
	visited map[digest.Digest]bool
}

// mark finds what is needed. Roots are the named entries, unnamed ones that refer to nothing (another tool's), and
// referrers of what is kept: unnamed entries whose manifest has a kept manifest as its subject. dead are the
// referrers whose subject has gone. A named root that cannot be read is an error, since what it needs is not known.
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
			return nil, nil, fmt.Errorf("cannot tell which blobs %s needs, remove it first: %w", label(d), err)
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

func label(d ocispec.Descriptor) string {
	if ref := d.Annotations[ocispec.AnnotationRefName]; ref != "" {
		return clip(ref)
	}
	return string(d.Digest)
}

// references is what manifests and indexes of any kind point to.
type references struct {
	Config    *ocispec.Descriptor  `json:"config"`
	Layers    []ocispec.Descriptor `json:"layers"`
	Blobs     []ocispec.Descriptor `json:"blobs"` // of the artifact manifest that image-spec v1.1 withdrew
	Manifests []ocispec.Descriptor `json:"manifests"`
	Subject   *ocispec.Descriptor  `json:"subject"`
}

// readReferences reads what an entry points to. An index may list any blob, so one of an unknown type that does not
// read like a manifest points to nothing; a manifest of a known type has to be readable.
func (s *Store) readReferences(d ocispec.Descriptor) (references, error) {
	known := false
	switch d.MediaType {
	case ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex, dockerManifest, dockerList:
		known = true
	}
	b, err := s.ReadBlob(d.Digest, MaxManifestSize)
	if err != nil {
		if !known && errors.Is(err, ErrTooLarge) {
			err = nil
		}
		return references{}, err
	}
	var doc references
	if err := json.Unmarshal(b, &doc); err != nil {
		if !known {
			return references{}, nil
		}
		return references{}, fmt.Errorf("manifest %s: %v: %w", d.Digest, err, ErrInvalidManifest)
	}
	return doc, nil
}

// markFrom marks a manifest and all that it points to. Of an index of manifests some may be absent, since tools
// copy single platforms.
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
			return fmt.Errorf("cannot tell which blobs %s needs, remove it first: %w", label(d), err)
		}
		if err := s.markFrom(child, childDoc, m); err != nil {
			return err
		}
	}
	return nil
}
