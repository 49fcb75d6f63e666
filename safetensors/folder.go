package safetensors

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"

	"github.com/ingotml/ingot/internal/limits/filekind"
	"github.com/ingotml/ingot/internal/limits/place"
)

// Folder is where a checkpoint's files are. Names are relative to it, with slashes. It is safe for concurrent use.
//
// A regular file that it opens is an [io.ReaderAt], and its Stat costs nothing. Methods of a folder that is not local
// observe the context that it was opened with.
type Folder interface {
	fs.ReadDirFS
	fs.StatFS
	// Path returns a file's path for messages; that of "." is the folder's.
	Path(name string) string
}

// KindOf returns what a file of a folder is, from its first bytes.
func KindOf(folder Folder, name string) (filekind.Found, error) {
	f, err := folder.Open(name)
	if err != nil {
		return filekind.Found{}, err
	}
	defer f.Close()
	r, ok := f.(readerAt)
	if !ok {
		return filekind.Found{}, fmt.Errorf("%s: %w", folder.Path(name), place.ErrNotRegular)
	}
	info, err := r.Stat()
	if err != nil {
		return filekind.Found{}, err
	}
	return filekind.Read(r, info.Size())
}

// readerAt is an open file that can be read at any offset.
type readerAt interface {
	fs.File
	io.ReaderAt
}

// ReadSmall reads a file of a folder that has at most that many bytes. A longer one is [ErrTooLong].
func ReadSmall(folder Folder, name string, most int64) ([]byte, error) {
	file, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size := int64(0)
	if info, err := file.Stat(); err == nil {
		size = info.Size()
	}
	if size > most {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLong, most)
	}
	// Of the right size from the start: growing takes as much again.
	text := bytes.NewBuffer(make([]byte, 0, max(size, 0)+bytes.MinRead))
	if _, err := text.ReadFrom(io.LimitReader(file, most+1)); err != nil {
		return nil, err
	}
	if int64(text.Len()) > most {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLong, most)
	}
	return text.Bytes(), nil
}
