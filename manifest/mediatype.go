package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"mime"
	"slices"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// manifestTypes contains the media types of images and indexes.
var manifestTypes = map[string]struct{ index bool }{
	ocispec.MediaTypeImageManifest: {false},
	DockerManifest:                 {false},
	ocispec.MediaTypeImageIndex:    {true},
	DockerList:                     {true},
}

// IsIndex reports whether mediaType is the media type of an index.
func IsIndex(mediaType string) bool { return manifestTypes[mediaType].index }

// plainTypes are generic media types, which servers use for files of unknown type.
var plainTypes = []string{"", "application/json", "text/plain", "application/octet-stream", "binary/octet-stream"}

// CheckType returns the media type of a manifest: that of an OCI image manifest or index, or of a Docker manifest or
// manifest list, schema 2. The argument mediaType came with the bytes, for example as Content-Type, and may be empty.
// If it is a manifest's media type, the manifest's own mediaType must be equal or absent. Otherwise the manifest's own
// counts. If that is absent and the argument is empty or generic, the manifest's members decide.
//
// A document of another media type is an [ErrUnknownManifest]. A document that lacks a member required by its type, or
// has a member of the other kind, is an [ErrInvalidManifest]. CheckType does not check an image's descriptors; [Blobs]
// does.
func CheckType(mediaType string, manifest []byte) (string, error) {
	if len(manifest) > MaxManifestSize {
		return "", fmt.Errorf("manifest of %d bytes, the limit is %d: %w", len(manifest), MaxManifestSize, ErrTooLarge)
	}
	var doc struct {
		SchemaVersion int                 `json:"schemaVersion"`
		MediaType     string              `json:"mediaType"`
		Config        *ocispec.Descriptor `json:"config"`
		Layers        descriptors         `json:"layers"`
		Manifests     descriptors         `json:"manifests"`
	}
	if err := json.Unmarshal(manifest, &doc); err != nil {
		return "", fmt.Errorf("manifest: %v: %w", err, ErrInvalidManifest)
	}
	came, _, err := mime.ParseMediaType(mediaType)
	if err != nil {
		came = mediaType
	}
	kind := cmp.Or(doc.MediaType, came)
	_, known := manifestTypes[came]
	switch {
	case known && kind != came:
		return "", fmt.Errorf("manifest was received as media type %s, but its mediaType is %q: %w",
			came, Clip(doc.MediaType), ErrInvalidManifest)
	case doc.MediaType == "" && slices.Contains(plainTypes, came):
		// OCI manifests may omit mediaType. Images and indexes have no required member in common, so the members decide.
		kind = ocispec.MediaTypeImageManifest
		if doc.Manifests.there {
			kind = ocispec.MediaTypeImageIndex
		}
	}
	of, known := manifestTypes[kind]
	if !known {
		return "", fmt.Errorf("manifest of media type %q is neither an image nor an index "+
			"(of OCI, or of Docker schema 2): %w", Clip(kind), ErrUnknownManifest)
	}
	if doc.SchemaVersion != 2 {
		return "", fmt.Errorf("manifest of media type %s has schema version %d, not 2: %w",
			kind, doc.SchemaVersion, ErrInvalidManifest)
	}
	if of.index {
		if !doc.Manifests.there || doc.Config != nil || doc.Layers.there {
			return "", fmt.Errorf("manifest of media type %s needs manifests, and neither config nor layers: %w",
				kind, ErrInvalidManifest)
		}
		if err := checkChildren(doc.Manifests.list); err != nil {
			return "", err
		}
		return kind, nil
	}
	if doc.Config == nil || !doc.Layers.there || doc.Manifests.there {
		return "", fmt.Errorf("manifest of media type %s needs config and layers, and no manifests: %w",
			kind, ErrInvalidManifest)
	}
	return kind, nil
}

// descriptors is a list that records whether it was present in JSON. Tools write null for an empty list, which counts
// as present.
type descriptors struct {
	there bool
	list  []ocispec.Descriptor
}

func (d *descriptors) UnmarshalJSON(b []byte) error {
	d.there = true
	return json.Unmarshal(b, &d.list)
}

// checkChildren validates the descriptors of an index.
func checkChildren(list []ocispec.Descriptor) error {
	if len(list) > limits.IndexManifests {
		return fmt.Errorf("index of %d manifests, the limit is %d: %w", len(list), limits.IndexManifests, ErrTooLarge)
	}
	for _, d := range list {
		if err := CheckDigest(d.Digest); err != nil {
			return fmt.Errorf("index: %w", err)
		}
		if d.Size < 0 {
			return fmt.Errorf("index: manifest %s has a size of %d bytes: %w", d.Digest, d.Size, ErrInvalidManifest)
		}
	}
	return nil
}

// CheckDigest checks that a digest is a well-formed sha256 or sha512 digest. Otherwise the error is an
// [ErrInvalidManifest].
func CheckDigest(d digest.Digest) error {
	if err := d.Validate(); err != nil {
		return fmt.Errorf("digest %q: %w: %w", Clip(string(d)), err, ErrInvalidManifest)
	}
	if a := d.Algorithm(); a != digest.SHA256 && a != digest.SHA512 {
		return fmt.Errorf("digest %q: algorithm %s, where sha256 and sha512 are supported: %w",
			Clip(string(d)), a, ErrInvalidManifest)
	}
	return nil
}

// Docker's media types of manifests. OCI tools may copy such manifests into the layout.
const (
	DockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	DockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
)
