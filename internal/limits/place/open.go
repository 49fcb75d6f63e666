package place

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrNotRegular reports a pipe, a device, a socket or a folder in the place of a file.
var ErrNotRegular = errors.New("not a regular file")

// ErrTooLarge reports a file that is larger than its reader takes.
var ErrTooLarge = errors.New("too large")

// Open opens a regular file for reading. It does not wait for the other end of a pipe, and opens no device, whose
// opening may do something. A file that the user named as an argument may be a pipe: os.Open is for those.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// OpenFile is Open as os.OpenFile.
func OpenFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, notRegular(path, info)
	}
	f, err := os.OpenFile(path, flag|NonBlocking, mode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() { // it was replaced meanwhile
		err = notRegular(path, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReadFile reads a whole regular file of at most limit bytes. A larger one is an [ErrTooLarge].
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes: %w", path, limit, ErrTooLarge)
	}
	return b, nil
}

func notRegular(path string, info fs.FileInfo) error {
	what := "a device"
	switch {
	case info.IsDir():
		what = "a folder"
	case info.Mode()&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case info.Mode()&fs.ModeSocket != 0:
		what = "a socket"
	}
	return fmt.Errorf("%s: %w: it is %s", path, ErrNotRegular, what)
}
