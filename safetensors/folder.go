package safetensors

import (
	"fmt"
	"io"
	"io/fs"

	"github.com/ingotml/ingot/limits/filekind"
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
		return filekind.Found{}, fmt.Errorf("%s: %w", folder.Path(name), errNotRegular)
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
