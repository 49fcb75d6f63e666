package index

import (
	"strconv"
	"strings"
	"time"

	"github.com/ingotml/ingot/manifest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Annotations on the index's descriptors, in addition to the name (image-spec v1.1.1, annotations.md). The size repeats
// what the manifest says, so that List does not open manifests. Dates are stored nowhere else.
const (
	AnnotationSize     = "org.ingotml.size"     // bytes of all blobs, manifest and config included
	AnnotationModified = "org.ingotml.modified" // RFC 3339, UTC
)

// Describe sets the annotations of an index entry.
func Describe(d *ocispec.Descriptor, name manifest.Name, size int64, modelType string, modified time.Time) {
	d.Annotations = map[string]string{
		ocispec.AnnotationRefName: name.String(),
		AnnotationSize:            strconv.FormatInt(size, 10),
		AnnotationModified:        modified.UTC().Format(time.RFC3339),
	}
	if modelType != "" {
		d.Annotations[manifest.AnnotationModelType] = modelType
	}
}

// NameOf returns the name of an index entry. Entries without a name are referrers or were written by other tools.
func NameOf(d ocispec.Descriptor) (manifest.Name, bool) {
	ref := d.Annotations[ocispec.AnnotationRefName]
	if ref == "" {
		return manifest.Name{}, false
	}
	name, err := manifest.ParseName(ref)
	if err != nil || name.Digest != "" {
		return manifest.Name{}, false
	}
	return name, true
}

// Matches reports whether the entry d, named entry, satisfies the requested name.
func Matches(d ocispec.Descriptor, entry, want manifest.Name) bool {
	return entry.Host == want.Host && entry.Path == want.Path &&
		(want.Tag == "" || entry.Tag == want.Tag) &&
		(want.Digest == "" || d.Digest == want.Digest)
}

// WithTag adds the default tag to a name that was not made by ParseName.
func WithTag(n manifest.Name) manifest.Name {
	if n.Tag == "" && n.Digest == "" {
		n.Tag = manifest.DefaultTag
	}
	return n
}

// Lookup returns the first entry that satisfies a name, and its own name.
func Lookup(idx ocispec.Index, want manifest.Name) (ocispec.Descriptor, manifest.Name, bool) {
	want = WithTag(want)
	for _, d := range idx.Manifests {
		if name, ok := NameOf(d); ok && Matches(d, name, want) {
			return d, name, true
		}
	}
	return ocispec.Descriptor{}, manifest.Name{}, false
}

// Finder finds many names in an index, whose own names are parsed once.
type Finder struct {
	idx   ocispec.Index
	names []manifest.Name
	by    map[manifest.Name][]int // entries by name, and by name without its tag
}

// NewFinder returns a Finder for an index that does not change.
func NewFinder(idx ocispec.Index) *Finder {
	f := &Finder{idx: idx, names: make([]manifest.Name, len(idx.Manifests)), by: map[manifest.Name][]int{}}
	for i, d := range idx.Manifests {
		if n, ok := NameOf(d); ok {
			f.names[i] = n
			repository := manifest.Name{Host: n.Host, Path: n.Path}
			f.by[n] = append(f.by[n], i)
			f.by[repository] = append(f.by[repository], i)
		}
	}
	return f
}

// All returns the positions of the entries that satisfy a name.
func (f *Finder) All(want manifest.Name) (list []int) {
	want = WithTag(want)
	for _, i := range f.by[manifest.Name{Host: want.Host, Path: want.Path, Tag: want.Tag}] {
		if Matches(f.idx.Manifests[i], f.names[i], want) {
			list = append(list, i)
		}
	}
	return list
}

// Existing returns a name as the index spells it. Of a name that no entry has, the host and path, and then the tag,
// take the case of an entry that differs in case only. Other names are returned unchanged.
func Existing(idx ocispec.Index, want manifest.Name) manifest.Name {
	want = WithTag(want)
	host, path, tag := want.Host, want.Path, want.Tag
	byPath, byTag := false, false
	for _, d := range idx.Manifests {
		n, ok := NameOf(d)
		if !ok || !strings.EqualFold(n.Host, want.Host) || !strings.EqualFold(n.Path, want.Path) {
			continue
		}
		samePath := n.Host == want.Host && n.Path == want.Path
		switch sameTag := strings.EqualFold(n.Tag, want.Tag); {
		case samePath && n.Tag == want.Tag:
			return want
		case sameTag && (!byTag || samePath):
			byPath, byTag = true, true
			host, path, tag = n.Host, n.Path, n.Tag
		case !byTag && (!byPath || samePath):
			byPath = true
			host, path = n.Host, n.Path
		}
	}
	want.Host, want.Path, want.Tag = host, path, tag
	return want
}

// Replace sets the entry of a name. It keeps the position of an existing entry and does not change others.
func Replace(idx *ocispec.Index, name manifest.Name, desc ocispec.Descriptor) {
	at := -1
	kept := idx.Manifests[:0]
	for _, d := range idx.Manifests {
		if n, ok := NameOf(d); ok && n == name {
			if at >= 0 {
				continue
			}
			at = len(kept)
			d = desc
		}
		kept = append(kept, d)
	}
	if at < 0 {
		kept = append(kept, desc)
	}
	idx.Manifests = kept
}

// AnnotationPartial marks an index entry of which blobs were left out on purpose. Its value is their number.
const AnnotationPartial = "org.ingotml.partial"

// AnnotationPushed lists the repositories that a model was pushed to, newest first, comma-separated.
const AnnotationPushed = "org.ingotml.pushed"

// MaxPushed limits the repositories that an entry lists.
const MaxPushed = 8

// PushedTo lists the repositories that an entry was pushed to, newest first.
func PushedTo(d ocispec.Descriptor) []string {
	if d.Annotations[AnnotationPushed] == "" {
		return nil
	}
	return strings.Split(d.Annotations[AnnotationPushed], ",")
}

// Label describes an entry in messages: its name, or its digest if it has none.
func Label(d ocispec.Descriptor) string {
	if ref := d.Annotations[ocispec.AnnotationRefName]; ref != "" {
		return manifest.Clip(ref)
	}
	return string(d.Digest)
}

// AnnotationSubject is the digest of a referrer's subject. It repeats what the manifest says, so that Referrers does
// not open the manifests of other subjects.
const AnnotationSubject = "org.ingotml.subject"
