package safetensors

import (
	"fmt"
	"io"
	"os"
)

// File is an open safetensors file. Its methods are safe for concurrent use.
type File struct {
	path   string
	file   container
	header *Header
	byName map[string]int // index in header.Tensors
}

// container is an open file.
type container interface {
	io.ReaderAt
	io.Closer
}

// Open opens a file and reads its header. The path may be a symbolic link to a regular file, as in download caches.
func Open(path string) (*File, error) { return OpenAs(path, ReadHeader) }

// OpenAs opens a file of another format whose tensors lie in it as in a safetensors file. read returns a description of
// the file, which has the given size; offsets may leave gaps.
func OpenAs(path string, read func(r io.ReaderAt, size int64) (*Header, error)) (*File, error) {
	// Check before opening, because opening a FIFO would block.
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, file: file}
	info, err := file.Stat()
	if err == nil {
		err = f.describe(read, info.Size())
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func (f *File) describe(read func(io.ReaderAt, int64) (*Header, error), size int64) (err error) {
	if f.header, err = read(f.file, size); err != nil {
		return err
	}
	f.byName = make(map[string]int, len(f.header.Tensors))
	for i, t := range f.header.Tensors {
		f.byName[t.Name] = i
	}
	return nil
}

// Close closes the file. Readers of its tensors fail afterwards.
func (f *File) Close() error { return f.file.Close() }

// Path returns the path that was opened.
func (f *File) Path() string { return f.path }

// Header returns the file's header, which the caller must not modify.
func (f *File) Header() *Header { return f.header }

// Lookup finds a tensor by name.
func (f *File) Lookup(name string) (Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return f.header.Tensors[i], true
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
