package manifest

import (
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Decode decodes an image of any encoding from its manifest and the config that the manifest refers to. A config that
// does not match the manifest's config descriptor is an [ErrCorrupt]. A manifest of another kind is an
// [*UnknownManifestError]; an invalid manifest in a known encoding is an [ErrInvalidManifest].
func Decode(manifest, config []byte) (Image, error) {
	m, err := parseManifest(manifest)
	if err != nil {
		return Image{}, err
	}
	if int64(len(config)) != m.Config.Size || digest.FromBytes(config) != m.Config.Digest {
		return Image{}, fmt.Errorf("config %s: %w", clip(string(m.Config.Digest)), ErrCorrupt)
	}
	if m.format == FormatOllama {
		return decodeOllama(m, config)
	}
	return decodeModelPack(m, config)
}

// parseManifest parses and validates a manifest up to its config descriptor. It rejects manifests that Decode does not
// support.
func parseManifest(b []byte) (parsedManifest, error) {
	var m parsedManifest
	if len(b) > MaxManifestSize {
		return m, fmt.Errorf("manifest of %d bytes, the limit is %d: %w", len(b), MaxManifestSize, ErrTooLarge)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("manifest: %v: %w", err, ErrInvalidManifest)
	}
	switch {
	case isModelPack(m.Manifest):
		m.format = FormatModelPack
	case isOllama(m):
		m.format = FormatOllama
		if what := unsupportedOllama(m); what != "" {
			return m, &UnknownManifestError{What: what, MediaType: m.MediaType, ConfigMediaType: m.Config.MediaType}
		}
	default:
		return m, &UnknownManifestError{
			MediaType: m.MediaType, ArtifactType: m.ArtifactType, ConfigMediaType: m.Config.MediaType,
		}
	}
	if m.SchemaVersion != 2 {
		return m, fmt.Errorf("manifest has schema version %d, not 2: %w", m.SchemaVersion, ErrInvalidManifest)
	}
	if !validDigest(m.Config.Digest) {
		return m, fmt.Errorf("config digest %q is not a sha256 digest: %w", clip(string(m.Config.Digest)), ErrInvalidManifest)
	}
	if m.Config.Size < 0 || m.Config.Size > MaxConfigSize {
		return m, fmt.Errorf("config of %d bytes, the limit is %d: %w", m.Config.Size, MaxConfigSize, ErrTooLarge)
	}
	return m, nil
}

// mediaTypeOf returns the media type of an encoding's manifests.
func mediaTypeOf(format string) string {
	if format == FormatOllama {
		return dockerManifest
	}
	return ocispec.MediaTypeImageManifest
}
