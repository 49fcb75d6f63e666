package index

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// NotFoundError reports a name that the store does not have, and similar names that it has. It matches
// [manifest.ErrNotFound].
type NotFoundError struct {
	Name manifest.Name
	Near []string // at most three, most similar first
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
// host, with another tag or in another case, or a path within a small edit distance.
func NotFound(idx ocispec.Index, want manifest.Name) error {
	type candidate struct {
		name string
		off  int
	}
	var near []candidate
	for _, d := range idx.Manifests {
		n, ok := NameOf(d)
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
