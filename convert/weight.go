package convert

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ingotml/ingot/convert/sources"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// weight is a readable tensor: one in a checkpoint's shard, or one in a blob.
type weight struct {
	Name  string
	DType safetensors.DType
	Shape []int64
	file  string // base name of the shard, or the blob's digest
	path  string // of the shard, for messages

	from   safetensors.Source // for a checkpoint
	layer  manifest.Layer     // for an image: the blob, which holds only this tensor
	quant  quantize.Type      // type of the blob; Shape is the tensor's, not that of its packed codes
	global float32            // the blob's scale of the whole tensor; 0 = none
	store  *store.Store
	size   int64 // of the file, when it was opened
	mtime  time.Time

	coded *sources.Weight // for a quantized checkpoint; DType and Shape describe the unpacked elements
	parts []weight        // the tensors that it is read from
}

func fileWeight(s safetensors.Source) weight {
	path := s.File.Path()
	w := weight{Name: s.Name, DType: s.DType, Shape: s.Shape, path: path, file: filepath.Base(path), from: s}
	if info, err := os.Stat(w.path); err == nil {
		w.size, w.mtime = info.Size(), info.ModTime()
	}
	return w
}

func codedWeight(s sources.Weight) weight {
	w := weight{Name: s.Name, DType: s.DType, Shape: s.Shape, coded: &s}
	for _, p := range s.Parts {
		w.parts = append(w.parts, fileWeight(p))
	}
	w.file, w.path = w.parts[0].file, w.parts[0].path
	return w
}

// files returns the shards' tensors that the weight is read from.
func (w weight) files() []weight {
	if w.coded != nil {
		return w.parts
	}
	return []weight{w}
}

func findWeight(list []weight, name string) (weight, bool) {
	i, ok := slices.BinarySearchFunc(list, name, func(w weight, name string) int { return cmp.Compare(w.Name, name) })
	if !ok {
		return weight{}, false
	}
	return list[i], true
}

func (w weight) describe() Source {
	s := Source{Name: w.Name, File: w.file, DType: w.DType, Shape: w.Shape, weight: w}
	if w.coded != nil {
		s.Format = w.coded.Format
	}
	return s
}

// open returns a reader of the tensor's bytes, and a function that closes it.
func (w weight) open() (io.ReaderAt, func() error, error) {
	if w.store == nil {
		return w.from.Reader(), func() error { return nil }, nil
	}
	f, err := safetensors.Open(w.store.BlobPath(w.layer.Digest))
	if err != nil {
		return nil, nil, err
	}
	t, ok := f.Lookup(w.layer.Name)
	if !ok {
		f.Close()
		return nil, nil, fmt.Errorf("%s: tensor %s: %w: not found", f.Path(), w.layer.Name, ErrSource)
	}
	return f.Reader(t), f.Close, nil
}

// unchanged returns an error if a file has changed since it was opened. Blobs never change.
func (w weight) unchanged() error {
	if w.store != nil {
		return nil
	}
	for _, p := range w.parts {
		if err := p.unchanged(); err != nil {
			return err
		}
	}
	if w.coded != nil {
		return nil
	}
	info, err := os.Stat(w.path)
	if err != nil {
		return err
	}
	if info.Size() != w.size || !info.ModTime().Equal(w.mtime) {
		return fmt.Errorf("%s: %w: it changed while it was read; wait until it is complete and run this again",
			w.path, ErrSource)
	}
	return nil
}
