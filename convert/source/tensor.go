package source

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// Tensor is a readable tensor.
type Tensor struct {
	Name  string
	DType safetensors.DType
	Shape []int64
	File  string // base name of the shard, or the blob's digest
	Path  string // of the file, for messages

	// Coded reads a tensor of a quantized checkpoint; DType and Shape describe the unpacked elements. It is nil for
	// tensors that are read as they are.
	Coded *packed.Weight

	// For a blob, which holds only this tensor:
	Quant  quantize.Type // type of the blob; Shape is the tensor's, not that of its packed codes
	Global float32       // scale of the whole tensor; 0 = none
	Header *blob.Blob    // nil for other tensors

	place  place
	folder safetensors.Folder // of Coded's parts
	parts  []Tensor           // of Coded, if they are not all in folder
}

// place is where a tensor's bytes are. Each kind of source has its own; nothing else differs between them.
type place interface {
	// open returns a reader of the tensor's bytes, and a function that closes it.
	open() (io.ReaderAt, func() error, error)
	// unchanged returns an error if the bytes may have changed since the source was opened.
	unchanged() error
}

// shard is a tensor in a checkpoint's file.
type shard struct {
	tensor safetensors.Source
	folder safetensors.Folder
	name   string // of the file, in the folder
	size   int64  // of the file, when it was opened
	time   time.Time
}

func fileTensor(folder safetensors.Folder, s safetensors.Source) Tensor {
	path, info := s.File.Path(), s.File.Info()
	in := shard{tensor: s, folder: folder, name: s.File.Name(), size: info.Size(), time: info.ModTime()}
	return Tensor{Name: s.Name, DType: s.DType, Shape: s.Shape, Path: path, File: in.name, place: in}
}

func (s shard) open() (io.ReaderAt, func() error, error) {
	return s.tensor.Reader(), func() error { return nil }, nil
}

func (s shard) unchanged() error {
	path := s.tensor.File.Path()
	info, err := s.tensor.File.Stat()
	if err != nil {
		return err
	}
	if info.Size() != s.size || !info.ModTime().Equal(s.time) {
		return fmt.Errorf("%s: %w: it changed while it was read; wait until it is complete and run this again",
			path, ErrSource)
	}
	return nil
}

// stored is a tensor in the store. Blobs never change.
type stored struct {
	path  string
	layer manifest.Layer
}

func (s stored) open() (io.ReaderAt, func() error, error) {
	f, err := safetensors.Open(s.path)
	if err != nil {
		return nil, nil, err
	}
	t, ok := f.Lookup(s.layer.Name)
	if !ok {
		f.Close()
		return nil, nil, fmt.Errorf("%s: tensor %s: %w: not found", f.Path(), s.layer.Name, ErrSource)
	}
	return f.Reader(t), f.Close, nil
}

func (s stored) unchanged() error { return nil }

func codedTensor(folder safetensors.Folder, s *packed.Weight) Tensor {
	file := s.Parts[0].File
	return Tensor{
		Name: s.Name, DType: s.DType, Shape: s.Shape, Coded: s, File: file.Name(), Path: file.Path(), folder: folder,
	}
}

// Parts returns the tensors of files or blobs that the tensor is read from.
func (t Tensor) Parts() []Tensor {
	switch {
	case t.Coded == nil:
		return []Tensor{t}
	case t.parts != nil:
		return t.parts
	}
	parts := make([]Tensor, len(t.Coded.Parts))
	for i, p := range t.Coded.Parts {
		parts[i] = fileTensor(t.folder, p)
	}
	return parts
}

// Layer returns the layer of the image that holds the tensor, if the source is an image.
func (t Tensor) Layer() (l manifest.Layer, ok bool) {
	s, ok := t.place.(stored)
	return s.layer, ok
}

// Format is the packing in a quantized checkpoint; "" for other tensors.
func (t Tensor) Format() string {
	if t.Coded == nil {
		return ""
	}
	return t.Coded.Format
}

// Size returns the bytes that are read for the tensor.
func (t Tensor) Size() int64 {
	if t.Coded != nil {
		return t.Coded.Size()
	}
	return safetensors.Tensor{DType: t.DType, Shape: t.Shape}.Size()
}

// Open returns a reader of the tensor's bytes, and a function that closes it. A tensor of a quantized checkpoint is
// read with [Tensor.Elements].
func (t Tensor) Open() (io.ReaderAt, func() error, error) {
	if t.place == nil {
		return nil, nil, fmt.Errorf("tensor %s: %w: it has no bytes of its own", t.Name, ErrSource)
	}
	return t.place.open()
}

// Elements reads the tensor of a quantized checkpoint, or a plain one in a checkpoint's file.
func (t Tensor) Elements() packed.Elements {
	if t.Coded != nil {
		return t.Coded.Read
	}
	s, ok := t.place.(shard)
	if !ok {
		return blobElements{t}
	}
	return packed.PlainElements(s.tensor)
}

// Unchanged returns an error if a file has changed since it was opened.
func (t Tensor) Unchanged() error {
	if t.Coded == nil {
		return t.place.unchanged()
	}
	for _, p := range t.Parts() {
		if err := p.Unchanged(); err != nil {
			return err
		}
	}
	return nil
}

func find(list []Tensor, name string) (*Tensor, bool) {
	i, ok := slices.BinarySearchFunc(list, name, func(t Tensor, name string) int { return cmp.Compare(t.Name, name) })
	if !ok {
		return nil, false
	}
	return &list[i], true
}

// ReadFull reads len(buf) bytes at an offset. A reader that ends before is an io.ErrUnexpectedEOF.
func ReadFull(r io.ReaderAt, buf []byte, offset int64) error {
	n, err := r.ReadAt(buf, offset)
	if n == len(buf) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
