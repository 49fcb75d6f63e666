package encoding

import (
	"encoding/json"
	"fmt"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/foreign"
	"github.com/ingotml/ingot/manifest/ollama"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Decode decodes an image of any encoding from its manifest and the config that the manifest refers to. A config that
// does not match the manifest's config descriptor is a [manifest.ErrCorrupt]. A manifest of another kind is an
// [*manifest.UnknownManifestError]; an invalid manifest in a known encoding is a [manifest.ErrInvalidManifest].
func Decode(manifestBytes, config []byte) (manifest.Image, error) {
	m, err := Parse(manifestBytes)
	if err != nil {
		return manifest.Image{}, err
	}
	if int64(len(config)) != m.Config.Size || digest.FromBytes(config) != m.Config.Digest {
		return manifest.Image{}, fmt.Errorf("config %s: %w", manifest.Clip(string(m.Config.Digest)), manifest.ErrCorrupt)
	}
	if m.Format == manifest.FormatOllama {
		return ollama.Decode(m, config)
	}
	return manifest.DecodeModelPack(m, config)
}

// Parse parses and validates a manifest up to its config descriptor. It rejects manifests that Decode does not
// support.
func Parse(b []byte) (manifest.ParsedManifest, error) {
	var m manifest.ParsedManifest
	if len(b) > manifest.MaxManifestSize {
		return m, fmt.Errorf("manifest of %d bytes, the limit is %d: %w", len(b), manifest.MaxManifestSize,
			manifest.ErrTooLarge)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("manifest: %v: %w", err, manifest.ErrInvalidManifest)
	}
	switch {
	case manifest.IsModelPack(m.Manifest):
		m.Format = manifest.FormatModelPack
	case ollama.Recognize(m):
		m.Format = manifest.FormatOllama
		if what := ollama.Unsupported(m); what != "" {
			return m, &manifest.UnknownManifestError{What: what, MediaType: m.MediaType, ConfigMediaType: m.Config.MediaType}
		}
	default:
		what, remedy := foreign.What(m)
		return m, &manifest.UnknownManifestError{
			What: what, MediaType: m.MediaType, ArtifactType: m.ArtifactType, ConfigMediaType: m.Config.MediaType,
			Remedy: remedy,
		}
	}
	if m.SchemaVersion != 2 {
		return m, fmt.Errorf("manifest has schema version %d, not 2: %w", m.SchemaVersion, manifest.ErrInvalidManifest)
	}
	if !manifest.ValidDigest(m.Config.Digest) {
		return m, fmt.Errorf("config digest %q is not a sha256 digest: %w", manifest.Clip(string(m.Config.Digest)),
			manifest.ErrInvalidManifest)
	}
	if m.Config.Size < 0 || m.Config.Size > manifest.MaxConfigSize {
		return m, fmt.Errorf("config of %d bytes, the limit is %d: %w", m.Config.Size, manifest.MaxConfigSize,
			manifest.ErrTooLarge)
	}
	return m, nil
}

// MediaType returns the media type of an encoding's manifests.
func MediaType(format string) string {
	if format == manifest.FormatOllama {
		return manifest.DockerManifest
	}
	return ocispec.MediaTypeImageManifest
}
