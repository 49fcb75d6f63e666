package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/manifest"
)

// AbsentError lists the layers of a model whose blobs are not in the store, for instance after a partial pull. It
// matches [manifest.ErrBlobMissing].
type AbsentError struct {
	Name   manifest.Name
	Layers []manifest.Layer
}

func (e *AbsentError) Error() string {
	const most = 3
	var names []string
	var size int64
	for i, l := range e.Layers {
		size += l.Size
		if i < most {
			names = append(names, manifest.Clip(l.Name))
		}
	}
	if more := len(e.Layers) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%s is incomplete: %s (%d bytes) not in the store", e.Name, strings.Join(names, ", "), size)
}

func (e *AbsentError) Is(target error) bool { return target == manifest.ErrBlobMissing }

// CheckPresent returns an [*AbsentError] if blobs of the model are not in the store. It ignores the draft model's blobs
// unless draft is true. It checks that the blobs exist and does not read them. A blob of the wrong size counts as
// present.
func (s *Store) CheckPresent(e *Entry, draft bool) error {
	var absent []manifest.Layer
	for _, l := range e.Image.Layers {
		if !draft && l.Draft() {
			continue
		}
		if err := s.CheckBlob(l.Digest, l.Size); errors.Is(err, manifest.ErrBlobMissing) {
			absent = append(absent, l)
		}
	}
	if len(absent) > 0 {
		return &AbsentError{Name: e.Name, Layers: absent}
	}
	return nil
}
