package manifest

import (
	"errors"
	"fmt"
	"strings"
)

// Draft reports whether a layer belongs to the draft model that an image brings along for speculation: its tensors' names
// start with "draft.", its files lie in draft/.
func (l Layer) Draft() bool {
	if l.Kind == KindTensor {
		return strings.HasPrefix(l.Name, "draft.")
	}
	return strings.HasPrefix(l.Name, "draft/")
}

// AbsentError names the layers of a model that the store does not have, as after a partial pull. It is an [ErrBlobMissing].
type AbsentError struct {
	Name   Name
	Layers []Layer
}

func (e *AbsentError) Error() string {
	const most = 3
	var names []string
	var size int64
	for i, l := range e.Layers {
		size += l.Size
		if i < most {
			names = append(names, clip(l.Name))
		}
	}
	if more := len(e.Layers) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%s is not whole: %s (%d bytes) not in the store", e.Name, strings.Join(names, ", "), size)
}

func (e *AbsentError) Is(target error) bool { return target == ErrBlobMissing }

// CheckPresent tells whether all blobs of a model are in the store, but for those of its draft unless draft is true. Blobs
// that are absent are an [*AbsentError]; nothing is read.
func (s *Store) CheckPresent(e *Entry, draft bool) error {
	var absent []Layer
	for _, l := range e.Image.Layers {
		if !draft && l.Draft() {
			continue
		}
		if err := s.checkBlob(l.Digest, l.Size); errors.Is(err, ErrBlobMissing) {
			absent = append(absent, l)
		}
	}
	if len(absent) > 0 {
		return &AbsentError{Name: e.Name, Layers: absent}
	}
	return nil
}
