package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Preallocate allocates disk space for a file without changing its size. It ignores file systems that do not support
// this.
func Preallocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return &os.PathError{Op: "allocate", Path: f.Name(), Err: err}
	}
	return nil
}
