package layout

import (
	"encoding/json"
	"fmt"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// index is an index.json. Members that this program does not know stay as they are.
type index struct {
	members map[string]json.RawMessage
	list    []indexEntry
}

// indexEntry is an entry of an index.
type indexEntry struct {
	raw  json.RawMessage
	desc ocispec.Descriptor
}

// emptyIndex returns an index without entries.
func emptyIndex() index {
	b, _ := json.Marshal(ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex,
	})
	x, _ := parseIndex(b)
	return x
}

// parseIndex parses an index.json. The error is an [ErrLayout].
func parseIndex(b []byte) (index, error) {
	var x index
	var doc struct {
		SchemaVersion int
		Manifests     []json.RawMessage
	}
	err := json.Unmarshal(b, &x.members)
	if err == nil {
		err = json.Unmarshal(b, &doc)
	}
	if err != nil {
		return x, fmt.Errorf("%s: %v: %w", ocispec.ImageIndexFile, err, ErrLayout)
	}
	if doc.SchemaVersion != 2 {
		return x, fmt.Errorf("%s has schema version %d, not 2: %w", ocispec.ImageIndexFile, doc.SchemaVersion, ErrLayout)
	}
	for _, raw := range doc.Manifests {
		e := indexEntry{raw: raw}
		if err := json.Unmarshal(raw, &e.desc); err != nil {
			return x, fmt.Errorf("%s: %v: %w", ocispec.ImageIndexFile, err, ErrLayout)
		}
		x.list = append(x.list, e)
	}
	return x, nil
}

// entries lists the descriptors.
func (x index) entries() []ocispec.Descriptor {
	list := make([]ocispec.Descriptor, len(x.list))
	for i, e := range x.list {
		list[i] = e.desc
	}
	return list
}

// nameOf returns the name of an entry, or "".
func nameOf(d ocispec.Descriptor) string { return d.Annotations[ocispec.AnnotationRefName] }

// add sets the entry of an image, which has the position of one with the same name, and lists its referrers.
func (x *index) add(root ocispec.Descriptor, referrers []ocispec.Descriptor) {
	name, set := nameOf(root), false
	kept := x.list[:0:0]
	for _, e := range x.list {
		if same := nameOf(e.desc) == name && (name != "" || e.desc.Digest == root.Digest); same {
			if set {
				continue
			}
			set = true
			if e.desc.Digest != root.Digest {
				e = newEntry(root)
			}
		}
		kept = append(kept, e)
	}
	if !set {
		kept = append(kept, newEntry(root))
	}
	there := map[digest.Digest]bool{}
	for _, e := range kept {
		there[e.desc.Digest] = true
	}
	for _, d := range referrers {
		if !there[d.Digest] {
			kept = append(kept, newEntry(d))
		}
		there[d.Digest] = true
	}
	x.list = kept
}

func newEntry(d ocispec.Descriptor) indexEntry {
	raw, _ := json.Marshal(d) // a descriptor always has a JSON form
	return indexEntry{raw, d}
}

// marshal returns the JSON form.
func (x index) marshal() ([]byte, error) {
	list := make([]json.RawMessage, 0, len(x.list)) // the specification requires an array
	for _, e := range x.list {
		list = append(list, e.raw)
	}
	members := map[string]json.RawMessage{}
	for k, v := range x.members {
		members[k] = v
	}
	var err error
	if members["manifests"], err = json.Marshal(list); err != nil {
		return nil, err
	}
	b, err := json.Marshal(members)
	if err == nil && len(b) > limits.LayoutIndex {
		err = fmt.Errorf("%s of %d bytes, the limit is %d: %w",
			ocispec.ImageIndexFile, len(b), limits.LayoutIndex, manifest.ErrTooLarge)
	}
	return b, err
}
