package store

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/manifest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// References reads the references of an index entry. An index may list blobs of any type, so an entry with an
// unknown media type that does not parse as a manifest has no references. A manifest of a known type must be valid.
func (s *Store) References(d ocispec.Descriptor) (manifest.References, error) {
	known := false
	switch d.MediaType {
	case ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex, manifest.DockerManifest, manifest.DockerList:
		known = true
	}
	b, err := s.ReadBlob(d.Digest, manifest.MaxManifestSize)
	if err != nil {
		if !known && errors.Is(err, manifest.ErrTooLarge) {
			err = nil
		}
		return manifest.References{}, err
	}
	var doc manifest.References
	if err := json.Unmarshal(b, &doc); err != nil {
		if !known {
			return manifest.References{}, nil
		}
		return manifest.References{}, fmt.Errorf("manifest %s: %v: %w", d.Digest, err, manifest.ErrInvalidManifest)
	}
	return doc, nil
}
