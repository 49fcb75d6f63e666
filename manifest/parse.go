package manifest

import ocispec "github.com/opencontainers/image-spec/specs-go/v1"

// Bounds on manifests and configs that are read into memory. The specification asks registries to accept manifests of
// at least 4 MiB (distribution-spec v1.1.1, "Pushing Manifests"), and common registries accept no more.
const (
	MaxManifestSize = 4 << 20
	MaxConfigSize   = 4 << 20
)

// Encodings of an image.
const (
	FormatModelPack = "modelpack" // what the store writes; see [EncodeModelPack]
	FormatOllama    = "ollama"    // see [ollama.Encode]
)

// ParsedManifest is a manifest in one of the known encodings.
type ParsedManifest struct {
	ocispec.Manifest
	Layers []ParsedLayer `json:"layers"`
	Format string        `json:"-"` // FormatModelPack or FormatOllama
}

// ParsedLayer is a descriptor with Ollama's additional field "name".
type ParsedLayer struct {
	ocispec.Descriptor
	Name string `json:"name"`
}
