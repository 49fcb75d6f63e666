package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// annotationSubject is the digest of a referrer's subject. It repeats what the manifest says, so that Referrers does
// not open the manifests of other subjects.
const annotationSubject = "org.ingotml.subject"

// artifactTypePattern is the syntax of media types (RFC 6838, section 4.2), which image-spec v1.1.1 requires of
// artifactType and mediaType.
var artifactTypePattern = regexp.MustCompile(
	`^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}$`)

// Artifact is a manifest with a subject, for example a signature, a bill of materials or a report.
type Artifact struct {
	Type        string               // artifactType, a media type
	Subject     ocispec.Descriptor   // descriptor of the manifest that it is about
	Layers      []ocispec.Descriptor // at least one
	Annotations map[string]string
}

// EncodeArtifact returns the artifact's manifest (image-spec v1.1.1, manifest.md, "Guidelines for Artifact Usage"). Its
// config is the empty descriptor's blob, ocispec.DescriptorEmptyJSON.Data.
func EncodeArtifact(a Artifact) ([]byte, error) {
	if !artifactTypePattern.MatchString(a.Type) {
		return nil, fmt.Errorf("artifact type %q is not a media type such as application/spdx+json: %w",
			clip(a.Type), ErrInvalidImage)
	}
	if !validDigest(a.Subject.Digest) || a.Subject.MediaType == "" {
		return nil, fmt.Errorf("artifact without a subject: %w", ErrInvalidImage)
	}
	if len(a.Layers) == 0 {
		return nil, fmt.Errorf("artifact without a layer: %w", ErrInvalidImage)
	}
	for _, l := range a.Layers {
		if !artifactTypePattern.MatchString(l.MediaType) {
			return nil, fmt.Errorf("layer's media type %q is not a media type such as application/json: %w",
				clip(l.MediaType), ErrInvalidImage)
		}
	}
	config := ocispec.DescriptorEmptyJSON
	config.Data = nil
	b, err := marshal(ocispec.Manifest{
		Versioned:    specs.Versioned{SchemaVersion: 2},
		MediaType:    ocispec.MediaTypeImageManifest,
		ArtifactType: a.Type,
		Config:       config,
		Layers:       a.Layers,
		Subject:      &ocispec.Descriptor{MediaType: a.Subject.MediaType, Digest: a.Subject.Digest, Size: a.Subject.Size},
		Annotations:  a.Annotations,
	})
	if err == nil && len(b) > MaxManifestSize {
		err = fmt.Errorf("artifact manifest of %d bytes, the limit is %d: %w", len(b), MaxManifestSize, ErrTooLarge)
	}
	return b, err
}

// Attach stores an artifact whose layers are in the store, and returns the descriptor of its manifest. The caller holds
// [Store.Lock] from the first blob on. If the store already has the artifact, it is unchanged.
func (s *Store) Attach(ctx context.Context, a Artifact) (ocispec.Descriptor, error) {
	b, err := EncodeArtifact(a)
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
	return ReferrerDescriptor(ocispec.MediaTypeImageManifest, b)
}

// ReferrerDescriptor returns a manifest's descriptor as in a list of referrers (distribution-spec v1.1.1, "Listing
// Referrers"): with its annotations and its artifact type, or else the media type of its config.
func ReferrerDescriptor(mediaType string, manifest []byte) (ocispec.Descriptor, error) {
	doc, err := parseReferrer(manifest)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return doc.descriptor(mediaType, manifest), nil
}

// referrer contains the members of a manifest with a subject. The manifest may be an image index.
type referrer struct {
	ArtifactType string              `json:"artifactType"`
	Config       *ocispec.Descriptor `json:"config"`
	Subject      *ocispec.Descriptor `json:"subject"`
	Annotations  map[string]string   `json:"annotations"`
}

func parseReferrer(manifest []byte) (referrer, error) {
	var doc referrer
	if len(manifest) > MaxManifestSize {
		return doc, fmt.Errorf("manifest of %d bytes, the limit is %d: %w", len(manifest), MaxManifestSize, ErrTooLarge)
	}
	if err := json.Unmarshal(manifest, &doc); err != nil {
		return doc, fmt.Errorf("manifest: %v: %w", err, ErrInvalidManifest)
	}
	return doc, nil
}

func (r referrer) descriptor(mediaType string, manifest []byte) ocispec.Descriptor {
	d := ocispec.Descriptor{
		MediaType:    mediaType,
		ArtifactType: r.ArtifactType,
		Digest:       digest.FromBytes(manifest),
		Size:         int64(len(manifest)),
		Annotations:  r.Annotations,
	}
	if d.ArtifactType == "" && r.Config != nil {
		d.ArtifactType = r.Config.MediaType
	}
	return d
}

// Referrers lists the unnamed manifests whose subject is the given manifest, in the order in which they were stored.
// If artifactType is not empty, it lists only manifests of that type.
func (s *Store) Referrers(
	ctx context.Context, subject digest.Digest, artifactType string,
) ([]ocispec.Descriptor, error) {
	idx, err := s.readIndex()
	if err != nil {
		return nil, err
	}
	var list []ocispec.Descriptor
	seen := map[digest.Digest]bool{}
	for _, d := range idx.Manifests {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		known := digest.Digest(d.Annotations[annotationSubject])
		if d.Annotations[ocispec.AnnotationRefName] != "" || known != "" && known != subject || seen[d.Digest] {
			continue
		}
		b, err := s.ReadBlob(d.Digest, MaxManifestSize)
		if err != nil {
			if known == "" || errors.Is(err, ErrBlobMissing) { // written by another tool, or removed since the index was read
				continue
			}
			return nil, fmt.Errorf("referrer of %s: %w", subject, err)
		}
		doc, err := parseReferrer(b)
		if err != nil || doc.Subject == nil || doc.Subject.Digest != subject {
			continue
		}
		seen[d.Digest] = true
		if found := doc.descriptor(d.MediaType, b); artifactType == "" || found.ArtifactType == artifactType {
			list = append(list, found)
		}
	}
	return list, nil
}

// PutReferrer stores a manifest that has a subject, byte for byte and without a name. The blobs that it refers to must
// be in the store, but its subject need not be. A collection removes the referrer together with its subject. The caller
// holds [Store.Lock] from the first blob on.
func (s *Store) PutReferrer(ctx context.Context, mediaType string, manifest []byte) (digest.Digest, error) {
	d, err := s.putReferrer(ctx, mediaType, manifest)
	if err != nil {
		return "", fmt.Errorf("store referrer: %w", err)
	}
	return d, nil
}

func (s *Store) putReferrer(ctx context.Context, mediaType string, manifest []byte) (digest.Digest, error) {
	doc, err := parseReferrer(manifest)
	if err != nil {
		return "", err
	}
	if doc.Subject == nil || !validDigest(doc.Subject.Digest) {
		return "", fmt.Errorf("manifest without a subject: %w", ErrInvalidManifest)
	}
	if mediaType, err = CheckType(mediaType, manifest); err != nil {
		return "", err
	}
	blobs, err := Blobs(manifest)
	if err != nil {
		return "", err
	}
	release, err := s.Lock(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	for _, b := range blobs {
		if err := s.checkBlob(b.Digest, b.Size); err != nil {
			return "", err
		}
	}
	d, _, err := s.PutBytes(ctx, manifest)
	if err != nil {
		return "", err
	}
	if err := syncDir(s.path(blobsDir)); err != nil {
		return "", err
	}
	desc := ocispec.Descriptor{
		MediaType:    mediaType,
		ArtifactType: doc.descriptor(mediaType, manifest).ArtifactType,
		Digest:       d,
		Size:         int64(len(manifest)),
		Annotations:  map[string]string{annotationSubject: string(doc.Subject.Digest)},
	}
	return d, s.updateIndex(ctx, func(idx *ocispec.Index) error {
		there := func(e ocispec.Descriptor) bool {
			return e.Digest == d && e.Annotations[ocispec.AnnotationRefName] == ""
		}
		if !slices.ContainsFunc(idx.Manifests, there) {
			idx.Manifests = append(idx.Manifests, desc)
		}
		return nil
	})
}
