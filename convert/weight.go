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
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// weight is a tensor that can be read: one of a checkpoint's file, or of a blob.
type weight struct {
	Name  string
	DType safetensors.DType
	Shape []int64
	file  string // base name of the file, or the blob's digest
	path  string // of the file, for messages

	from   safetensors.Source // of a checkpoint
	layer  manifest.Layer     // of an image: the blob that holds this tensor alone
	quant  quantize.Type      // how that blob holds it; Shape is that of the tensor, not of the packed one
	global float32            // and its scale of the whole tensor; 0 = none
	store  *manifest.Store
	size   int64 // of the file when it was opened
	mtime  time.Time

	coded *sources.Weight // of a quantized checkpoint; DType and Shape are those of the elements
	parts []weight        // that it is read from
}

func fileWeight(s safetensors.Source) weight {
	w := weight{Name: s.Name, DType: s.DType, Shape: s.Shape, path: s.File.Path(), file: filepath.Base(s.File.Path()), from: s}
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

// files are the weight as it lies in the checkpoint's files.
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

// open gives the tensor's bytes, from 0, for positioned reads.
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
		return nil, nil, fmt.Errorf("%s: tensor %s: %w: it is not there", f.Path(), w.layer.Name, ErrSource)
	}
	return f.Reader(t), f.Close, nil
}

// unchanged tells whether the file is as it was when it was opened. Blobs never change.
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
		return fmt.Errorf("%s: %w: it changed while it was read; run this again when it is complete", w.path, ErrSource)
	}
	return nil
}
