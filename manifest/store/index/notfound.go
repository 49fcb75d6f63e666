package index

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ingotml/ingot/internal/limits/near"
	"github.com/ingotml/ingot/manifest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// NotFoundError reports a name that the store does not have, and similar names that it has. It matches
// [manifest.ErrNotFound].
type NotFoundError struct {
	Name manifest.Name
	Near []string // at most three, most similar first

	Empty bool // the store has no models at all
}

func (e *NotFoundError) Error() string {
	msg := fmt.Sprintf("model %s not found in the store", e.Name)
	if len(e.Near) > 0 {
		msg += "; similar names: " + strings.Join(e.Near, ", ")
	}
	return msg
}

func (e *NotFoundError) Is(target error) bool { return target == manifest.ErrNotFound }

// NotFound returns a NotFoundError with names that the user may have meant: the same path or last component on another
// host, with another tag or in another case, one that starts like it, or a path within a small edit distance.
func NotFound(idx ocispec.Index, want manifest.Name) error {
	type candidate struct {
		name string
		off  int
	}
	var found []candidate
	for _, d := range idx.Manifests {
		n, ok := NameOf(d)
		if !ok {
			continue
		}
		have, wanted := strings.ToLower(n.Path), strings.ToLower(want.Path)
		off, ok := near.Off(have, wanted)
		if have, wanted := path.Base(have), path.Base(wanted); have == wanted || near.Begins(have, wanted) {
			off, ok = min(off, 1), true
		}
		if ok {
			found = append(found, candidate{n.String(), off})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		if a.off != b.off {
			return a.off - b.off
		}
		return strings.Compare(a.name, b.name)
	})
	e := &NotFoundError{Name: want, Empty: !slices.ContainsFunc(idx.Manifests, func(d ocispec.Descriptor) bool {
		_, ok := NameOf(d)
		return ok
	})}
	for _, c := range found[:min(len(found), 3)] {
		e.Near = append(e.Near, c.name)
	}
	return e
}
