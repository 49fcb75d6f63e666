package registry

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
	blobformat "github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/registry/redact"
	modelspec "github.com/modelpack/model-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// pullBlob is a blob with a display name.
type pullBlob struct {
	ocispec.Descriptor
	label string
}

// layerDescriptor is a layer in any encoding. In ollama's, the name has a field of its own.
type layerDescriptor struct {
	ocispec.Descriptor
	Name string `json:"name"`
}

// names returns the names by which a user may select the layer: the tensor's, the file's path, and their last elements.
func (l layerDescriptor) names() []string {
	var list []string
	for _, n := range []string{
		l.Annotations[blobformat.AnnotationTensor], l.Name, l.Annotations[modelspec.AnnotationFilepath],
		l.Annotations[ocispec.AnnotationTitle],
	} {
		if n == "" {
			continue
		}
		list = append(list, n)
		if base := path.Base(n); base != n {
			list = append(list, base)
		}
	}
	return list
}

// draft reports whether a layer belongs to a draft model; see [manifest.Layer.Draft].
func (l layerDescriptor) draft() bool {
	tensors := strings.TrimSuffix(manifest.TensorPath(blobformat.DraftPrefix), ".safetensors")
	return slices.ContainsFunc(l.names(), func(n string) bool {
		return blobformat.IsDraft(n) || strings.HasPrefix(n, blobformat.DraftFolder) || strings.HasPrefix(n, tensors)
	})
}

// selectLayers splits the blobs of a manifest into those that the options select and the others. The config is always
// selected.
func selectLayers(b []byte, opts PullOptions) (wanted, skipped []pullBlob, err error) {
	all, err := manifest.Blobs(b)
	if err != nil {
		return nil, nil, err
	}
	var doc struct {
		Layers []layerDescriptor `json:"layers"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, nil, fmt.Errorf("manifest: %v: %w", err, manifest.ErrInvalidManifest)
	}
	labels, excluded, matched := map[digest.Digest]string{}, map[digest.Digest]bool{}, false
	for _, l := range doc.Layers {
		names := l.names()
		if _, seen := labels[l.Digest]; !seen && len(names) > 0 {
			labels[l.Digest] = redact.Clip(names[0])
		}
		take := !(opts.NoDraft && l.draft()) && (len(opts.Only) == 0 || matchAny(opts.Only, names))
		matched = matched || take
		if was, seen := excluded[l.Digest]; !seen || was { // a blob is needed if any of its layers is selected
			excluded[l.Digest] = !take
		}
	}
	if len(opts.Only) > 0 && !matched {
		return nil, nil, fmt.Errorf("no layer matches %s; use patterns of file paths or tensor names, such as '*.json'",
			strings.Join(opts.Only, ", "))
	}
	for _, d := range all {
		b := pullBlob{d, labels[d.Digest]}
		if b.label == "" {
			b.label = string(d.Digest)[:len("sha256:")+12]
		}
		if excluded[d.Digest] {
			skipped = append(skipped, b)
		} else {
			wanted = append(wanted, b)
		}
	}
	return wanted, skipped, nil
}

func matchAny(globs, names []string) bool {
	for _, g := range globs {
		for _, n := range names {
			if ok, _ := path.Match(g, n); ok {
				return true
			}
		}
	}
	return false
}
