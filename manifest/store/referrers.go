package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/index"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Attach stores an artifact whose layers are in the store, and returns the descriptor of its manifest. The caller holds
// [Store.Lock] from the first blob on. If the store already has the artifact, it is unchanged.
func (s *Store) Attach(ctx context.Context, a manifest.Artifact) (ocispec.Descriptor, error) {
	b, err := manifest.EncodeArtifact(a)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	release, err := s.Lock(ctx)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	defer release()
	if _, _, err := s.PutBytes(ctx, ocispec.DescriptorEmptyJSON.Data); err != nil {
		return ocispec.Descriptor{}, err
	}
	if _, err := s.PutReferrer(ctx, ocispec.MediaTypeImageManifest, b); err != nil {
		return ocispec.Descriptor{}, err
	}
	return manifest.ReferrerDescriptor(ocispec.MediaTypeImageManifest, b)
}

// Referrers lists the unnamed manifests whose subject is the given manifest, in the order in which they were stored.
// If artifactType is not empty, it lists only manifests of that type.
func (s *Store) Referrers(
	ctx context.Context, subject digest.Digest, artifactType string,
) ([]ocispec.Descriptor, error) {
	idx, err := s.ReadIndex()
	if err != nil {
		return nil, err
	}
	return s.referrers(ctx, idx.Manifests, subject, artifactType)
}

// referrers returns those of some entries that are referrers of a subject.
func (s *Store) referrers(
	ctx context.Context, entries []ocispec.Descriptor, subject digest.Digest, artifactType string,
) ([]ocispec.Descriptor, error) {
	var list []ocispec.Descriptor
	seen := map[digest.Digest]bool{}
	for _, d := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		known := digest.Digest(d.Annotations[index.AnnotationSubject])
		if d.Annotations[ocispec.AnnotationRefName] != "" || known != "" && known != subject || seen[d.Digest] {
			continue
		}
		b, err := s.ReadBlob(d.Digest, manifest.MaxManifestSize)
		if err != nil {
			// written by another tool, or removed since the index was read
			if known == "" || errors.Is(err, manifest.ErrBlobMissing) {
				continue
			}
			return nil, fmt.Errorf("referrer of %s: %w", subject, err)
		}
		doc, err := manifest.ParseReferrer(b)
		if err != nil || doc.Subject == nil || doc.Subject.Digest != subject {
			continue
		}
		seen[d.Digest] = true
		if found := doc.Descriptor(d.MediaType, b); artifactType == "" || found.ArtifactType == artifactType {
			list = append(list, found)
		}
	}
	return list, nil
}

// PutReferrer stores a manifest that has a subject, byte for byte and without a name. The blobs that it refers to must
// be in the store, but its subject need not be. A collection removes the referrer together with its subject. The caller
// holds [Store.Lock] from the first blob on.
func (s *Store) PutReferrer(ctx context.Context, mediaType string, manifestBytes []byte) (digest.Digest, error) {
	d, err := s.putReferrer(ctx, mediaType, manifestBytes)
	if err != nil {
		return "", fmt.Errorf("store referrer: %w", err)
	}
	return d, nil
}

func (s *Store) putReferrer(ctx context.Context, mediaType string, manifestBytes []byte) (digest.Digest, error) {
	doc, err := manifest.ParseReferrer(manifestBytes)
	if err != nil {
		return "", err
	}
	if doc.Subject == nil || !manifest.ValidDigest(doc.Subject.Digest) {
		return "", fmt.Errorf("manifest without a subject: %w", manifest.ErrInvalidManifest)
	}
	if mediaType, err = manifest.CheckType(mediaType, manifestBytes); err != nil {
		return "", err
	}
	blobs, err := manifest.Blobs(manifestBytes)
	if err != nil {
		return "", err
	}
	release, err := s.Lock(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	for _, b := range blobs {
		if err := s.CheckBlob(b.Digest, b.Size); err != nil {
			return "", err
		}
	}
	d, err := s.putManifest(ctx, manifestBytes)
	if err != nil {
		return "", err
	}
	desc := ocispec.Descriptor{
		MediaType:    mediaType,
		ArtifactType: doc.Descriptor(mediaType, manifestBytes).ArtifactType,
		Digest:       d,
		Size:         int64(len(manifestBytes)),
		Annotations:  map[string]string{index.AnnotationSubject: string(doc.Subject.Digest)},
	}
	return d, s.UpdateIndex(ctx, func(idx *ocispec.Index) error {
		there := func(e ocispec.Descriptor) bool {
			return e.Digest == d && e.Annotations[ocispec.AnnotationRefName] == ""
		}
		if !slices.ContainsFunc(idx.Manifests, there) {
			idx.Manifests = append(idx.Manifests, desc)
		}
		return nil
	})
}
