// Package choose chooses the image that is meant by the name of an index: the one that is a model, for this machine.
//
// Contract:
//
//   - Of several that may be meant none is chosen; the error names them.
//   - A manifest has the size and the media type that its index says.
package choose

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/foreign"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Images lists the images of an index. It returns nil for other manifests.
func Images(m *remote.Manifest) ([]ocispec.Descriptor, error) {
	if !manifest.IsIndex(m.MediaType) {
		return nil, nil
	}
	var index struct {
		Manifests []ocispec.Descriptor `json:"manifests"`
	}
	if err := json.Unmarshal(m.Bytes, &index); err != nil {
		return nil, fmt.Errorf("manifest: %v: %w", err, manifest.ErrInvalidManifest)
	}
	return slices.DeleteFunc(index.Manifests, func(d ocispec.Descriptor) bool {
		return d.Annotations["vnd.docker.reference.type"] != "" // an attestation, which builders add to the index
	}), nil
}

// maxImages limits the images of an index that are examined.
const maxImages = 16

// indexed is an image that an index lists.
type indexed struct {
	listed   ocispec.Descriptor
	manifest *remote.Manifest
	what     string // what it is if it is no model; "" for a model
}

// Model returns the manifest itself, or of an index the one image that is a model, or the only image. Of several
// models for different processors, it is the one for this machine. get reads a manifest, and name names one in
// messages.
func Model(
	m *remote.Manifest, get func(digest.Digest) (*remote.Manifest, error), name func(digest.Digest) string,
) (*remote.Manifest, error) {
	list, err := Images(m)
	if err != nil || list == nil {
		return m, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the index lists no images: %w", manifest.ErrUnknownManifest)
	}
	if len(list) > maxImages {
		return nil, fmt.Errorf("the index lists %d images; name one by its digest, such as %s",
			len(list), name(list[0].Digest))
	}
	var models, others []indexed
	var unknown error
	seen := map[digest.Digest]bool{}
	for _, d := range list {
		if seen[d.Digest] { // one image for several platforms
			continue
		}
		seen[d.Digest] = true
		m, err := get(d.Digest)
		if errors.Is(err, manifest.ErrUnknownManifest) {
			unknown = err
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := checkIndexEntry(d, m); err != nil {
			return nil, err
		}
		if what, ok := notModel(m); ok {
			others = append(others, indexed{d, m, what})
		} else {
			models = append(models, indexed{listed: d, manifest: m})
		}
	}
	switch {
	case len(models) == 1:
		return models[0].manifest, nil
	case len(models) == 0 && len(others) == 1:
		return others[0].manifest, nil
	case len(models) > 1:
		if i := forThisMachine(models); i != nil {
			return i.manifest, nil
		}
		others = models
	case len(others) == 0:
		return nil, unknown
	}
	var names []string
	for _, i := range others {
		names = append(names, name(i.manifest.Digest)+i.describe())
	}
	return nil, fmt.Errorf("the index lists several images; name one: %s", strings.Join(names, ", "))
}

// notModel reports whether a manifest is surely not that of a model, and what it is as far as that is known.
func notModel(m *remote.Manifest) (what string, ok bool) {
	if manifest.IsIndex(m.MediaType) {
		return "an index", true
	}
	img, err := foreign.Parse(m.Bytes, nil)
	if err != nil {
		return "", false // which its reader reports
	}
	var no *manifest.UnknownManifestError
	if errors.As(img.Model(), &no) {
		return no.What, true
	}
	return "", false
}

// forThisMachine returns the one model for this machine's processor, if each is for another one.
func forThisMachine(models []indexed) *indexed {
	var found *indexed
	var processors []string
	for n, i := range models {
		at := i.listed.Platform
		if at == nil || at.Architecture == "" || slices.Contains(processors, at.Architecture) {
			return nil
		}
		processors = append(processors, at.Architecture)
		if at.Architecture == runtime.GOARCH {
			found = &models[n]
		}
	}
	return found
}

// describe says in parentheses how an image differs from others of its index.
func (i indexed) describe() string {
	var parts []string
	if i.what != "" {
		parts = append(parts, i.what)
	}
	if at := i.listed.Platform; at != nil && at.Architecture != "" {
		parts = append(parts, redact.Clip(at.OS+"/"+at.Architecture))
	}
	for _, key := range []string{ocispec.AnnotationRefName, ocispec.AnnotationTitle, ocispec.AnnotationVersion} {
		if text := i.listed.Annotations[key]; text != "" {
			parts = append(parts, redact.Clip(text))
		}
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// checkIndexEntry compares size and media type of a manifest with its descriptor in an index. The digest is already
// verified.
func checkIndexEntry(d ocispec.Descriptor, m *remote.Manifest) error {
	switch {
	case d.Size != int64(len(m.Bytes)):
		return fmt.Errorf("manifest %s has %d bytes, but its index says %d: %w",
			d.Digest, len(m.Bytes), d.Size, remote.ErrDigest)
	case d.MediaType != m.MediaType:
		return fmt.Errorf("manifest %s has media type %s, but its index says %q: %w",
			d.Digest, m.MediaType, redact.Clip(d.MediaType), manifest.ErrInvalidManifest)
	}
	return nil
}
