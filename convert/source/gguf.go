package source

import (
	"cmp"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/ingotml/ingot/convert/gguf/checkpoint"
	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/safetensors"
)

// Options control how a source is read.
type Options struct {
	// Exact keeps every element of a GGUF file exactly, at the cost of float32 scales, biases and elements.
	Exact bool
}

// IsGGUF reports whether a path is that of a GGUF file, by its name.
func IsGGUF(path string) bool { return checkpoint.IsFile(path) }

// OpenFile reads a GGUF file, or the split set that it belongs to. The caller must close the result.
func OpenFile(path string, o Options) (*Source, error) {
	names, err := checkpoint.Set(filepath.Base(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrSource, err)
	}
	src := &Source{From: path, exact: o.Exact}
	return src.opened(src.openGGUF(filepath.Dir(path), names))
}

// ggufIn opens the only GGUF model of a folder, and reports whether there is one.
func (src *Source) ggufIn(entries []fs.DirEntry) (bool, error) {
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	set, err := checkpoint.Choose(names)
	if err != nil {
		return true, fmt.Errorf("%s: %w: %w", src.From, ErrSource, err)
	}
	if set == nil {
		return false, nil
	}
	return true, src.openGGUF(src.From, set)
}

// openGGUF opens the files of a model. What they say replaces the folder's files, except for documents.
func (src *Source) openGGUF(dir string, names []string) error {
	var paths []string
	for _, name := range names {
		paths = append(paths, filepath.Join(dir, name))
	}
	c, err := checkpoint.Open(paths, checkpoint.Options{Exact: src.exact})
	if err != nil {
		return err
	}
	src.checkpoint, src.gguf, src.Model = safetensors.CheckpointOf(c.Sources()...), c, c.Model
	src.Files = slices.DeleteFunc(src.Files, func(f File) bool { return slices.Contains(imported, f.Name) })
	for _, f := range append([]checkpoint.File{{Name: ConfigName, Data: c.Config}}, c.Files...) {
		src.Files = append(src.Files,
			File{Kind: manifest.KindFile, Name: f.Name, Size: int64(len(f.Data)), Data: f.Data})
	}
	slices.SortFunc(src.Files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	src.addFound(c.Result)
	return nil
}

// Rounding returns the number of tensors of a GGUF file whose scales are rounded to float16, and the largest error that
// this has caused in any element that was read so far.
func (src *Source) Rounding() (tensors int, largest float64) {
	if src.gguf == nil {
		return 0, 0
	}
	return len(src.gguf.Rounded), src.gguf.Rounding()
}

// addFound adds what a checkpoint has.
func (src *Source) addFound(found packed.Result) {
	for _, s := range found.Plain {
		src.tensors = append(src.tensors, fileTensor(s))
	}
	for _, w := range found.Weights {
		src.tensors = append(src.tensors, codedTensor(w))
	}
	slices.SortFunc(src.tensors, func(a, b Tensor) int { return cmp.Compare(a.Name, b.Name) })
	for _, i := range found.Ignored {
		src.ignored = append(src.ignored, Ignored{fileTensor(i.Source), i.Reason})
	}
	src.recognized = found.Recognized
}
