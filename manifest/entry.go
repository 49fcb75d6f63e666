package manifest

import (
	"strconv"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Annotations on the index's descriptors, in addition to the name (image-spec v1.1.1, annotations.md). The size repeats
// what the manifest says, so that List does not open manifests. Dates are stored nowhere else.
const (
	annotationSize     = "org.ingotml.size"     // bytes of all blobs, manifest and config included
	annotationModified = "org.ingotml.modified" // RFC 3339, UTC
)

// describe sets the annotations of an index entry.
func describe(d *ocispec.Descriptor, name Name, size int64, modelType string, modified time.Time) {
	d.Annotations = map[string]string{
		ocispec.AnnotationRefName: name.String(),
		annotationSize:            strconv.FormatInt(size, 10),
		annotationModified:        modified.UTC().Format(time.RFC3339),
	}
	if modelType != "" {
		d.Annotations[annotationModelType] = modelType
	}
}

// entryName returns the name of an index entry. Entries without a name are referrers or were written by other tools.
func entryName(d ocispec.Descriptor) (Name, bool) {
	ref := d.Annotations[ocispec.AnnotationRefName]
	if ref == "" {
		return Name{}, false
	}
	name, err := ParseName(ref)
	if err != nil || name.Digest != "" {
		return Name{}, false
	}
	return name, true
}

// matches reports whether the entry d, named entry, satisfies the requested name.
func matches(d ocispec.Descriptor, entry, want Name) bool {
	return entry.Host == want.Host && entry.Path == want.Path &&
		(want.Tag == "" || entry.Tag == want.Tag) &&
		(want.Digest == "" || d.Digest == want.Digest)
}

// withTag adds the default tag to a name that was not made by ParseName.
func withTag(n Name) Name {
	if n.Tag == "" && n.Digest == "" {
		n.Tag = DefaultTag
	}
	return n
}

func lookup(idx ocispec.Index, want Name) (ocispec.Descriptor, Name, bool) {
	want = withTag(want)
	for _, d := range idx.Manifests {
		if name, ok := entryName(d); ok && matches(d, name, want) {
			return d, name, true
		}
	}
	return ocispec.Descriptor{}, Name{}, false
}

// replaceEntry sets the entry of a name. It keeps the position of an existing entry and does not change others.
func replaceEntry(idx *ocispec.Index, name Name, desc ocispec.Descriptor) {
	at := -1
	kept := idx.Manifests[:0]
	for _, d := range idx.Manifests {
		if n, ok := entryName(d); ok && n == name {
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

// annotationPartial marks an index entry of which blobs were left out on purpose. Its value is their number.
const annotationPartial = "org.ingotml.partial"

// annotationPushed lists the repositories that a model was pushed to, newest first, comma-separated.
const annotationPushed = "org.ingotml.pushed"

// maxPushed limits the repositories that an entry lists.
const maxPushed = 8

func pushedTo(d ocispec.Descriptor) []string {
	if d.Annotations[annotationPushed] == "" {
		return nil
	}
	return strings.Split(d.Annotations[annotationPushed], ",")
}

func label(d ocispec.Descriptor) string {
	if ref := d.Annotations[ocispec.AnnotationRefName]; ref != "" {
		return clip(ref)
	}
	return string(d.Digest)
}

// annotationSubject is the digest of a referrer's subject. It repeats what the manifest says, so that Referrers does
// not open the manifests of other subjects.
const annotationSubject = "org.ingotml.subject"
