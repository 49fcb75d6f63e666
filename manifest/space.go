package manifest

import (
	"fmt"
	"os"

	"github.com/opencontainers/go-digest"
)

// SpaceError says that the disk has no room for what is to come. It is an [ErrNoSpace].
type SpaceError struct {
	Dir        string
	Need, Free int64 // bytes
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("%s needs %d bytes more than what is there, and its disk has %d: free some space, or choose another folder (INGOT_HOME)",
		e.Dir, e.Need, e.Free)
}

func (e *SpaceError) Is(target error) bool { return target == ErrNoSpace }

// noSpace makes the errors of a full disk [ErrNoSpace]s.
func noSpace(err error) error {
	if err != nil && isDiskFull(err) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}

// CheckSpace tells early that this many bytes will not fit beside what is there. Where the system does not tell how much
// room there is, it says nothing.
func (s *Store) CheckSpace(need int64) error {
	free, known := freeSpace(s.root)
	if !known || need <= free {
		return nil
	}
	return &SpaceError{Dir: s.root, Need: need, Free: free}
}

// PartialSpace is how much room an unfinished download of a blob takes up already.
func (s *Store) PartialSpace(d digest.Digest) int64 {
	if !validDigest(d) {
		return 0
	}
	info, err := os.Lstat(s.path(ingestDir, d.Encoded()+partSuffix))
	if err != nil {
		return 0
	}
	return allocated(info)
}
