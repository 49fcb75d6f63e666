package manifest

import (
	"encoding/json"
	"fmt"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Blobs lists the blobs that a manifest of any kind refers to, except other manifests: first the config, then the
// layers, each digest once. It validates untrusted input: digests must be well-formed, sizes within limits, and a
// digest must not occur with two sizes.
func Blobs(manifest []byte) ([]ocispec.Descriptor, error) {
	if len(manifest) > MaxManifestSize {
		return nil, fmt.Errorf("manifest of %d bytes, the limit is %d: %w", len(manifest), MaxManifestSize, ErrTooLarge)
	}
	var doc References
	if err := json.Unmarshal(manifest, &doc); err != nil {
		return nil, fmt.Errorf("manifest: %v: %w", err, ErrInvalidManifest)
	}
	all := doc.Layers
	if doc.Config != nil {
		all = append([]ocispec.Descriptor{*doc.Config}, doc.Layers...)
	}
	all = append(all, doc.Blobs...)
	if len(all) > limits.ManifestBlobs {
		return nil, fmt.Errorf("manifest of %d blobs, the limit is %d: %w", len(all), limits.ManifestBlobs, ErrTooLarge)
	}
	sizes := map[digest.Digest]int64{}
	var list []ocispec.Descriptor
	var total int64
	for _, d := range all {
		if !ValidDigest(d.Digest) {
			return nil, fmt.Errorf("digest %q is not a sha256 digest: %w", Clip(string(d.Digest)), ErrInvalidManifest)
		}
		if d.Size < 0 {
			return nil, fmt.Errorf("blob %s has a size of %d bytes: %w", d.Digest, d.Size, ErrInvalidManifest)
		}
		if d.Size > limits.BlobSize {
			return nil, fmt.Errorf("blob %s of %d bytes, the limit is %d: %w",
				d.Digest, d.Size, int64(limits.BlobSize), ErrTooLarge)
		}
		if size, twice := sizes[d.Digest]; twice {
			if size != d.Size {
				return nil, fmt.Errorf("blob %s has two sizes, %d and %d bytes: %w", d.Digest, size, d.Size, ErrInvalidManifest)
			}
			continue
		}
		if total += d.Size; total < 0 {
			return nil, fmt.Errorf("the sizes of the blobs overflow: %w", ErrInvalidManifest)
		}
		sizes[d.Digest] = d.Size
		list = append(list, d)
	}
	return list, nil
}

// References contains the descriptors in a manifest or index of any kind.
type References struct {
	Config    *ocispec.Descriptor  `json:"config"`
	Layers    []ocispec.Descriptor `json:"layers"`
	Blobs     []ocispec.Descriptor `json:"blobs"` // from the artifact manifest that image-spec v1.1 withdrew
	Manifests []ocispec.Descriptor `json:"manifests"`
	Subject   *ocispec.Descriptor  `json:"subject"`
}

// MaxIndexDepth limits nested indexes. They are legal, but deeper nesting is an attack.
const MaxIndexDepth = 8
