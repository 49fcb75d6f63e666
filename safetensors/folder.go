package safetensors

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

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

// Dir is a local folder.
type Dir string

// Path returns the file's path in the operating system's notation.
func (d Dir) Path(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

// Open opens a file. A symbolic link is followed, because files of download caches are links. Anything but a regular
// file is an error, and is not opened: opening a FIFO would block.
func (d Dir) Open(name string) (fs.File, error) { return openRegular(d.Path(name)) }

// Stat describes a file; see [Stat].
func (d Dir) Stat(name string) (fs.FileInfo, error) { return Stat(d.Path(name)) }

// ReadDir lists a folder, sorted by name.
func (d Dir) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(d.Path(name)) }

// Stat describes a local file or folder. A link without a target is ErrIncomplete: in a download cache, links exist
// before their targets.
func Stat(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if target, errLink := os.Readlink(path); errLink == nil {
			return nil, fmt.Errorf("%s: %w: it is a link to %s, which does not exist: the download is incomplete; "+
				"download it again", path, ErrIncomplete, quote(target))
		}
	}
	return info, err
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

func openRegular(path string) (fs.File, error) {
	if info, err := Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", path, errNotRegular)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err // not f, which would be an interface that is not nil
	}
	return f, nil
}

// readerAt is an open file that can be read at any offset.
type readerAt interface {
	fs.File
	io.ReaderAt
}
