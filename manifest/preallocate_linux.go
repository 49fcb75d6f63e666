package manifest

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// preallocate gets a file its space, and leaves its size as it is. File systems that cannot are no error.
func preallocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return &os.PathError{Op: "allocate", Path: f.Name(), Err: err}
	}
	return nil
}
