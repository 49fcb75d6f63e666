package manifest

import (
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Bounds on what is read into memory. Registries are asked to take manifests of 4 MiB (distribution-spec v1.1.1,
// "Pushing Manifests"), and common ones take no more.
const (
	MaxManifestSize = 4 << 20
	MaxConfigSize   = 4 << 20
)

// The encodings of an image.
const (
	FormatModelPack = "modelpack" // what [Store.Put] stores: see [EncodeModelPack]
	FormatOllama    = "ollama"    // see [EncodeOllama]
)

// Decode reads an image from the bytes of its manifest and of the config that the manifest names, in any encoding. The
// config must match the manifest's descriptor ([ErrCorrupt]). A manifest of another kind is an [*UnknownManifestError];
// damage in a known one is an [ErrInvalidManifest].
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

// parsedManifest is a manifest in one of the encodings.
type parsedManifest struct {
	ocispec.Manifest
	Layers []parsedLayer `json:"layers"`
	format string
}

// parsedLayer is a descriptor with the field that Ollama adds to it.
type parsedLayer struct {
	ocispec.Descriptor
	Name string `json:"name"`
}

// parseManifest reads a manifest as far as is needed to fetch its config. It fails on those that Decode does not know.
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
		if what := notRun(m); what != "" {
			return m, &UnknownManifestError{What: what, MediaType: m.MediaType, ConfigMediaType: m.Config.MediaType}
		}
	default:
		return m, &UnknownManifestError{MediaType: m.MediaType, ArtifactType: m.ArtifactType, ConfigMediaType: m.Config.MediaType}
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
