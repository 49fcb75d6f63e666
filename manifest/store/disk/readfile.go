package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/ingotml/ingot/manifest"
)

// ErrNotFile reports a folder, a pipe or a device in the place of a file.
var ErrNotFile = errors.New("not a file")

// Open opens a file for reading. It does not wait for the other end of a pipe.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotFile}
	}
	return os.Open(path)
}

// ReadLimited reads a whole file of at most limit bytes. A larger file is a [manifest.ErrTooLarge].
func ReadLimited(path string, limit int64) ([]byte, error) {
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
		return nil, fmt.Errorf("%s has more than %d bytes: %w", path, limit, manifest.ErrTooLarge)
	}
	return b, nil
}
