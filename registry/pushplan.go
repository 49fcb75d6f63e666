package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// maxDepth limits how deeply indexes nest.
const maxDepth = 4

// gather appends a manifest to docs, after those of the manifests that it lists that the source has.
func (p *pusher) gather(ctx context.Context, docs []remote.Manifest, m remote.Manifest,
	depth int) ([]remote.Manifest, error) {
	if depth > maxDepth || len(docs) > limits.IndexManifests {
		return nil, fmt.Errorf("manifest %s: its indexes nest too deeply or list too many manifests: %w",
			m.Digest, manifest.ErrTooLarge)
	}
	var err error
	if m.MediaType, err = manifest.CheckType(m.MediaType, m.Bytes); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", m.Digest, err)
	}
	var index struct{ Manifests []ocispec.Descriptor }
	if err := json.Unmarshal(m.Bytes, &index); err != nil {
		return nil, fmt.Errorf("manifest %s: %v: %w", m.Digest, err, manifest.ErrInvalidManifest)
	}
	for _, child := range index.Manifests {
		if slices.ContainsFunc(docs, func(m remote.Manifest) bool { return m.Digest == child.Digest }) {
			continue
		}
		if child.Digest.Algorithm() != digest.SHA256 {
			continue // neither a store nor ingot's copies have others
		}
		b, err := p.from.Manifest(ctx, child.Digest)
		if errors.Is(err, manifest.ErrBlobMissing) || errors.Is(err, remote.ErrNotFound) {
			continue // tools may copy only some platforms of an index
		}
		if err != nil {
			return nil, err
		}
		if docs, err = p.gather(ctx, docs, remote.Manifest{MediaType: child.MediaType, Digest: child.Digest, Bytes: b},
			depth+1); err != nil {
			return nil, err
		}
	}
	return append(docs, m), nil
}

// blobsOf lists the blobs that manifests reference, each digest once. The largest comes first, so that no large blob is
// left to run alone at the end.
func blobsOf(docs []remote.Manifest) ([]blob, error) {
	var list []blob
	seen := map[digest.Digest]bool{}
	for _, m := range docs {
		blobs, err := manifest.Blobs(m.Bytes)
		if err != nil {
			return nil, err
		}
		for _, d := range blobs {
			if !seen[d.Digest] {
				seen[d.Digest] = true
				list = append(list, blob{Descriptor: d, name: BlobName(d)})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b blob) int { return cmp.Compare(b.Size, a.Size) })
	return list, nil
}

// BlobName returns a blob's name for display, or "" if it has none.
func BlobName(d ocispec.Descriptor) string {
	for _, key := range []string{"org.cncf.model.filepath", ocispec.AnnotationTitle} {
		if name := d.Annotations[key]; name != "" {
			return redact.Clip(name)
		}
	}
	return ""
}
