package manifest

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

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
			Clip(a.Type), ErrInvalidImage)
	}
	if !ValidDigest(a.Subject.Digest) || a.Subject.MediaType == "" {
		return nil, fmt.Errorf("artifact without a subject: %w", ErrInvalidImage)
	}
	if len(a.Layers) == 0 {
		return nil, fmt.Errorf("artifact without a layer: %w", ErrInvalidImage)
	}
	for _, l := range a.Layers {
		if !artifactTypePattern.MatchString(l.MediaType) {
			return nil, fmt.Errorf("layer's media type %q is not a media type such as application/json: %w",
				Clip(l.MediaType), ErrInvalidImage)
		}
	}
	config := ocispec.DescriptorEmptyJSON
	config.Data = nil
	b, err := Marshal(ocispec.Manifest{
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

// ReferrerDescriptor returns a manifest's descriptor as in a list of referrers (distribution-spec v1.1.1, "Listing
// Referrers"): with its annotations and its artifact type, or else the media type of its config.
func ReferrerDescriptor(mediaType string, manifest []byte) (ocispec.Descriptor, error) {
	doc, err := ParseReferrer(manifest)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return doc.Descriptor(mediaType, manifest), nil
}

// referrer contains the members of a manifest with a subject. The manifest may be an image index.
type referrer struct {
	ArtifactType string              `json:"artifactType"`
	Config       *ocispec.Descriptor `json:"config"`
	Subject      *ocispec.Descriptor `json:"subject"`
	Annotations  map[string]string   `json:"annotations"`
}

// ParseReferrer parses a manifest that may have a subject. It checks the size and the JSON syntax only.
func ParseReferrer(manifest []byte) (referrer, error) {
	var doc referrer
	if len(manifest) > MaxManifestSize {
		return doc, fmt.Errorf("manifest of %d bytes, the limit is %d: %w", len(manifest), MaxManifestSize, ErrTooLarge)
	}
	if err := json.Unmarshal(manifest, &doc); err != nil {
		return doc, fmt.Errorf("manifest: %v: %w", err, ErrInvalidManifest)
	}
	return doc, nil
}

// Descriptor returns the manifest's descriptor as in a list of referrers; see [ReferrerDescriptor].
func (r referrer) Descriptor(mediaType string, manifest []byte) ocispec.Descriptor {
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
