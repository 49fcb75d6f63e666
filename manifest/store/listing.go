package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/index"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Listing is a store with one reading of its index. What describes many models uses it instead of the store: looking
// each name up in the index again takes time that is quadratic in their number. Images are read with
// [Store.ReadEntry]. Its methods must not be used by several goroutines at once.
type Listing struct {
	*Store
	Models  []Summary // sorted by name
	Skipped int       // entries that are not listed because their names are invalid, or the same as another's

	unnamed   []ocispec.Descriptor
	bySubject map[digest.Digest][]ocispec.Descriptor // nil until it is needed
}

// Listing reads the index.
func (s *Store) Listing(ctx context.Context) (*Listing, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	idx, err := s.ReadIndex()
	if err != nil {
		return nil, err
	}
	l := &Listing{Store: s}
	seen := map[manifest.Name]bool{}
	for _, d := range idx.Manifests {
		name, ok := index.NameOf(d)
		switch {
		case ok && !seen[name]:
			seen[name] = true
			l.Models = append(l.Models, newSummary(name, d))
		case d.Annotations[ocispec.AnnotationRefName] == "":
			l.unnamed = append(l.unnamed, d)
		default:
			l.Skipped++
		}
	}
	slices.SortStableFunc(l.Models, func(a, b Summary) int { return strings.Compare(a.Name.String(), b.Name.String()) })
	return l, nil
}

func newSummary(name manifest.Name, d ocispec.Descriptor) Summary {
	sum := Summary{Name: name, Digest: d.Digest, ModelType: d.Annotations[manifest.AnnotationModelType]}
	if n, err := strconv.ParseUint(d.Annotations[index.AnnotationSize], 10, 63); err == nil {
		sum.Size = int64(n)
	}
	if n, err := strconv.Atoi(d.Annotations[index.AnnotationPartial]); err == nil && n > 0 {
		sum.Partial = n
	}
	if t, err := time.Parse(time.RFC3339, d.Annotations[index.AnnotationModified]); err == nil {
		sum.Modified = t
	}
	return sum
}

// PerImage returns a function that calls of once for each image, however many names the image has.
func PerImage[T any](of func(Summary) T) func(Summary) T {
	known := map[digest.Digest]T{}
	return func(m Summary) T {
		if v, ok := known[m.Digest]; ok {
			return v
		}
		v := of(m)
		known[m.Digest] = v
		return v
	}
}

// Configs returns a function that returns the configuration of a listed model. It is zero if the image is not a model,
// or has been removed since the index was read.
func (l *Listing) Configs() func(Summary) manifest.Config {
	return PerImage(func(m Summary) manifest.Config {
		entry, err := l.ReadEntry(m.Name, m.Digest)
		if err != nil {
			return manifest.Config{}
		}
		return entry.Image.Config
	})
}

// Referrers is [Store.Referrers] as of the reading of the index.
func (l *Listing) Referrers(
	ctx context.Context, subject digest.Digest, artifactType string,
) ([]ocispec.Descriptor, error) {
	if l.bySubject == nil {
		l.bySubject = map[digest.Digest][]ocispec.Descriptor{}
		for _, d := range l.unnamed {
			of := digest.Digest(d.Annotations[index.AnnotationSubject])
			if of == "" { // another tool's, which does not repeat it in the index
				of = l.subject(d)
			}
			l.bySubject[of] = append(l.bySubject[of], d)
		}
	}
	return l.referrers(ctx, l.bySubject[subject], subject, artifactType)
}

// subject returns what the manifest of an entry refers to, or "".
func (s *Store) subject(d ocispec.Descriptor) digest.Digest {
	doc, err := s.References(d)
	if err != nil || doc.Subject == nil {
		return ""
	}
	return doc.Subject.Digest
}
