package manifest

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Annotations on the index's descriptors, in addition to the name (image-spec v1.1.1, annotations.md). The size repeats
// what the manifest says, so that List does not open manifests. Dates are stored nowhere else.
const (
	annotationSize     = "org.ingotml.size"     // bytes of all blobs, manifest and config included
	annotationModified = "org.ingotml.modified" // RFC 3339, UTC
)

// maxIndexSize limits index.json. It is enough for about 100,000 models.
const maxIndexSize = 64 << 20

// Summary is what the index says about a model.
type Summary struct {
	Name      Name
	Digest    digest.Digest
	Size      int64     // bytes of the blobs, manifest and config included; 0 if another tool wrote the entry
	ModelType string    // empty if unknown
	Modified  time.Time // when the name was last set; zero if another tool wrote the entry
	Partial   int       // number of blobs that a partial pull left out
	Shared    int64     // bytes that removing the name would not free; only ListShared sets it
}

// List returns the models in the store, sorted by name. It reads only the index.
func (s *Store) List(ctx context.Context) ([]Summary, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	idx, err := s.readIndex()
	if err != nil {
		return nil, err
	}
	var list []Summary
	for _, d := range idx.Manifests {
		name, ok := entryName(d)
		if !ok {
			continue
		}
		sum := Summary{Name: name, Digest: d.Digest, ModelType: d.Annotations[annotationModelType]}
		if n, err := strconv.ParseUint(d.Annotations[annotationSize], 10, 63); err == nil {
			sum.Size = int64(n)
		}
		if n, err := strconv.Atoi(d.Annotations[annotationPartial]); err == nil && n > 0 {
			sum.Partial = n
		}
		if t, err := time.Parse(time.RFC3339, d.Annotations[annotationModified]); err == nil {
			sum.Modified = t
		}
		list = append(list, sum)
	}
	slices.SortStableFunc(list, func(a, b Summary) int { return strings.Compare(a.Name.String(), b.Name.String()) })
	return list, nil
}

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

// setEntry points a name at a manifest.
func (s *Store) setEntry(ctx context.Context, name Name, desc ocispec.Descriptor) error {
	return s.updateIndex(ctx, func(idx *ocispec.Index) error {
		replaceEntry(idx, name, desc)
		return nil
	})
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

// readIndex needs no lock, because index.json is replaced atomically.
func (s *Store) readIndex() (ocispec.Index, error) {
	var idx ocispec.Index
	b, err := readLimited(s.path(ocispec.ImageIndexFile), maxIndexSize)
	if err != nil {
		return idx, fmt.Errorf("read model index: %w", err)
	}
	if err := json.Unmarshal(b, &idx); err != nil {
		return idx, fmt.Errorf("read model index %s: %v: %w", s.path(ocispec.ImageIndexFile), err, ErrCorrupt)
	}
	if idx.SchemaVersion != 2 {
		return idx, fmt.Errorf("read model index %s: schema version %d, not 2: %w",
			s.path(ocispec.ImageIndexFile), idx.SchemaVersion, ErrCorrupt)
	}
	return idx, nil
}

// updateIndex changes the index under its lock. If change returns an error, the index is not written.
func (s *Store) updateIndex(ctx context.Context, change func(*ocispec.Index) error) error {
	unlock, err := s.lockIndex(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	idx, err := s.readIndex()
	if err != nil {
		return err
	}
	if err := change(&idx); err != nil {
		return err
	}
	return s.writeIndex(idx)
}

func (s *Store) writeIndex(idx ocispec.Index) error {
	idx.Versioned = specs.Versioned{SchemaVersion: 2}
	idx.MediaType = ocispec.MediaTypeImageIndex
	if idx.Manifests == nil {
		idx.Manifests = []ocispec.Descriptor{} // the specification requires an array
	}
	b, err := marshal(idx)
	if err != nil {
		return fmt.Errorf("write model index: %w", err)
	}
	if len(b) > maxIndexSize {
		return fmt.Errorf("write model index: %d bytes, the limit is %d: %w", len(b), maxIndexSize, ErrTooLarge)
	}
	return s.replaceFile(ocispec.ImageIndexFile, b)
}

// notFound returns a NotFoundError with names that the user may have meant: the same path or last component on another
// host, with another tag or in another case, or a path within a small edit distance.
func notFound(idx ocispec.Index, want Name) error {
	type candidate struct {
		name string
		off  int
	}
	var near []candidate
	for _, d := range idx.Manifests {
		n, ok := entryName(d)
		if !ok {
			continue
		}
		off := distance(strings.ToLower(n.Path), strings.ToLower(want.Path))
		if strings.EqualFold(path.Base(n.Path), path.Base(want.Path)) {
			off = min(off, 1)
		}
		if off <= max(1, min(len(n.Path), len(want.Path))/4) {
			near = append(near, candidate{n.String(), off})
		}
	}
	slices.SortFunc(near, func(a, b candidate) int {
		if a.off != b.off {
			return a.off - b.off
		}
		return strings.Compare(a.name, b.name)
	})
	e := &NotFoundError{Name: want}
	for _, c := range near[:min(len(near), 3)] {
		e.Near = append(e.Near, c.name)
	}
	return e
}

// distance returns the edit distance of a and b: the number of insertions, deletions and substitutions of bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
