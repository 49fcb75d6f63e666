package safetensors

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ingotml/ingot/internal/limits/place"
)

// File is an open safetensors file. Its methods are safe for concurrent use.
type File struct {
	path   string
	name   string // in its folder
	file   readerAt
	info   fs.FileInfo // when it was opened
	stat   func() (fs.FileInfo, error)
	header *Header
	byName []int32 // indexes of header.Tensors, sorted by name
}

// Open opens a file and reads its header. The path may be a symbolic link to a regular file, as in download caches.
func Open(path string) (*File, error) {
	file, err := LinkedDir("").Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, name: filepath.Base(path), stat: func() (fs.FileInfo, error) { return os.Stat(path) }}
	return f.opened(file, ReadHeader)
}

// OpenIn opens a file of a folder and reads its header.
func OpenIn(folder Folder, name string) (*File, error) { return OpenAs(folder, name, ReadHeader) }

// OpenAs opens a file of another format whose tensors lie in it as in a safetensors file. read returns a description of
// the file, which has the given size; offsets may leave gaps.
func OpenAs(folder Folder, name string, read func(r io.ReaderAt, size int64) (*Header, error)) (*File, error) {
	file, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	f := &File{path: folder.Path(name), name: name, stat: func() (fs.FileInfo, error) { return folder.Stat(name) }}
	return f.opened(file, read)
}

// opened reads the header of an open file, which belongs to the result. An error closes it.
func (f *File) opened(file fs.File, read func(io.ReaderAt, int64) (*Header, error)) (*File, error) {
	var ok bool
	if f.file, ok = file.(readerAt); !ok {
		_ = file.Close()
		return nil, fmt.Errorf("%s: %w", f.path, place.ErrNotRegular)
	}
	if err := f.describe(read); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return f, nil
}

func (f *File) describe(read func(io.ReaderAt, int64) (*Header, error)) (err error) {
	if f.info, err = f.file.Stat(); err != nil {
		return err
	}
	if f.header, err = read(f.file, f.info.Size()); err != nil {
		return err
	}
	f.byName = orderByName(f.header.Tensors)
	return nil
}

// Info describes the file as it was when it was opened.
func (f *File) Info() fs.FileInfo { return f.info }

// Stat describes the file as it is now.
func (f *File) Stat() (fs.FileInfo, error) { return f.stat() }

// ReadAt reads bytes of the file; see [io.ReaderAt].
func (f *File) ReadAt(p []byte, offset int64) (int, error) { return f.file.ReadAt(p, offset) }

// Close closes the file. Readers of its tensors fail afterwards.
func (f *File) Close() error { return f.file.Close() }

// Path returns the path that was opened.
func (f *File) Path() string { return f.path }

// Name returns the file's name in its folder.
func (f *File) Name() string { return f.name }

// Header returns the file's header, which the caller must not modify.
func (f *File) Header() *Header { return f.header }

// Lookup finds a tensor by name.
func (f *File) Lookup(name string) (Tensor, bool) {
	list := f.header.Tensors
	i, ok := slices.BinarySearchFunc(f.byName, name, func(at int32, name string) int {
		return cmp.Compare(list[at].Name, name)
	})
	if !ok {
		return Tensor{}, false
	}
	return list[f.byName[i]], true
}

// Reader returns a reader of the data of t, a tensor of this file. If the file has shrunk since it was opened, reads
// fail with ErrTruncated instead of io.EOF, so that a copy cannot end early unnoticed.
func (f *File) Reader(t Tensor) *io.SectionReader {
	return io.NewSectionReader(tensorReaderAt{f, t.Name}, f.header.DataOffset+t.Begin, t.End-t.Begin)
}

// tensorReaderAt is the source of a tensor's section reader, which reads only within the tensor. Every short read is
// therefore an error.
type tensorReaderAt struct {
	file *File
	name string
}

func (r tensorReaderAt) ReadAt(p []byte, offset int64) (int, error) {
	n, err := r.file.file.ReadAt(p, offset)
	if n == len(p) {
		return n, nil
	}
	if err == nil || err == io.EOF {
		return n, fmt.Errorf("%s: tensor %s: %w: it ended at byte %d of %d while the tensor was read",
			r.file.path, quote(r.name), ErrTruncated, offset+int64(n), r.file.header.Size)
	}
	return n, fmt.Errorf("%s: tensor %s: %w", r.file.path, quote(r.name), err)
}
