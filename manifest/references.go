package manifest

import (
	"encoding/json"
	"errors"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// readReferences reads the references of an index entry. An index may list blobs of any type, so an entry with an
// unknown media type that does not parse as a manifest has no references. A manifest of a known type must be valid.
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
