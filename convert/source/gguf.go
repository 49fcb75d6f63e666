package source

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/convert/gguf/checkpoint"
	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/convert/tokens"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/safetensors"
)

// Options control how a source is read.
type Options struct {
	// Exact keeps every element of a GGUF file exactly, at the cost of float32 scales, biases and elements.
	Exact bool
	// As is the model type to read the checkpoint as, one of [arch.Types], whatever config.json declares; "" = the
	// declared one.
	As string
}

// IsGGUF reports whether a path is that of a GGUF file, by its name.
func IsGGUF(path string) bool { return checkpoint.IsFile(path) }

// Chooser is a folder of which the user may have named a part, as in hf.co/ORG/REPO:Q4_K_M.
type Chooser interface {
	safetensors.Folder
	// Choice returns what the user named, a GGUF file or a type of one, and the names of all files, those of subfolders
	// too. wanted is "" for the whole folder.
	Choice() (wanted string, names []string)
}

// Wanted returns what the user named of a folder; "" = the whole folder.
func Wanted(folder safetensors.Folder) string {
	if c, ok := folder.(Chooser); ok {
		wanted, _ := c.Choice()
		return wanted
	}
	return ""
}

// WeightBytes returns the size of the files that [OpenFolder] reads weights from, before any is read.
func WeightBytes(folder safetensors.Folder) (total int64, err error) {
	entries, err := folder.ReadDir(".")
	if err != nil {
		return 0, err
	}
	var files []string
	wanted := Wanted(folder)
	for _, e := range entries {
		if wanted == "" && filepath.Ext(e.Name()) == ".safetensors" {
			files = append(files, e.Name())
		}
	}
	if files == nil {
		if files, err = choose(folder, entries, wanted); err != nil {
			return 0, err
		}
	}
	for _, name := range files {
		info, err := folder.Stat(name)
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, nil
}

// OpenFile reads a GGUF file of a folder, or the split set that it belongs to. The caller must close the result, which
// closes the folder.
func OpenFile(folder safetensors.Folder, name string, o Options) (*Source, error) {
	src := &Source{From: folder.Path(name), folder: folder, options: o}
	names, err := checkpoint.Set(name)
	if err != nil {
		return src.opened(fmt.Errorf("%s: %w: %w", src.From, ErrSource, err))
	}
	return src.opened(src.openGGUF(names))
}

// openWanted opens what the user named of the folder.
func (src *Source) openWanted(wanted string, entries []fs.DirEntry) error {
	set, err := choose(src.folder, entries, wanted)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return isImported(e.Name()) || e.Name() == chat.AdditionalDir
	})
	if src.Files, err = readFiles(src.folder, entries); err != nil {
		return err
	}
	return src.openGGUF(set)
}

// ggufIn opens the only GGUF model of the folder, and reports whether there is one.
func (src *Source) ggufIn(entries []fs.DirEntry) (bool, error) {
	set, err := choose(src.folder, entries, "")
	if set == nil && err == nil {
		return false, nil
	}
	if err == nil {
		err = src.openGGUF(set)
	}
	return true, err
}

// choose returns the files of a GGUF model of a folder.
func choose(folder safetensors.Folder, entries []fs.DirEntry, wanted string) ([]string, error) {
	remedy := "name one of the files"
	var names []string
	if c, ok := folder.(Chooser); ok {
		remedy = "add :TYPE or :FILE to the name, such as :Q4_K_M"
		_, names = c.Choice()
	} else {
		for _, e := range entries {
			if !e.IsDir() {
				names = append(names, e.Name())
			}
		}
	}
	set, err := checkpoint.Choose(names, wanted)
	if errors.Is(err, safetensors.ErrAmbiguous) {
		err = fmt.Errorf("%w; %s", err, remedy)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", folder.Path("."), ErrSource, err)
	}
	return set, nil
}

// openGGUF opens the files of a model. What they say replaces the folder's files, except for documents.
func (src *Source) openGGUF(names []string) error {
	if src.options.As != "" {
		return fmt.Errorf("%s: %w: a GGUF file's architecture names its metadata and tensors, so it cannot be read as %s; "+
			"use the model's safetensors checkpoint", src.From, ErrSource, src.options.As)
	}
	c, err := checkpoint.Open(src.folder, names, checkpoint.Options{Exact: src.options.Exact})
	if err != nil {
		return err
	}
	src.checkpoint, src.gguf, src.Model = safetensors.CheckpointOf(c.Sources()...), c, c.Model
	src.Files = slices.DeleteFunc(src.Files, func(f File) bool {
		return isImported(f.Name) || tokens.Reads(f.Name)
	})
	for _, f := range append([]checkpoint.File{{Name: ConfigName, Data: c.Config}}, c.Files...) {
		src.Files = append(src.Files,
			File{Kind: manifest.KindFile, Name: f.Name, Size: int64(len(f.Data)), Data: f.Data})
	}
	slices.SortFunc(src.Files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	src.addFound(c.Result)
	src.Files, err = withTokenizer(src.folder, src.Files)
	return err
}

// Rounding returns the number of tensors of a GGUF file whose scales are rounded to float16, and the largest error that
// this has caused in any element that was read so far.
func (src *Source) Rounding() (tensors int, largest float64) {
	if src.gguf == nil {
		return 0, 0
	}
	return len(src.gguf.Rounded), src.gguf.Rounding()
}

// Notes lists what a checkpoint says and is ignored.
func (src *Source) Notes() []string {
	if src.gguf == nil {
		return src.notes
	}
	return src.gguf.Notes
}

// addFound adds what a checkpoint has.
func (src *Source) addFound(found packed.Result) {
	for _, s := range found.Plain {
		src.tensors = append(src.tensors, fileTensor(src.folder, s))
	}
	for _, w := range found.Weights {
		src.tensors = append(src.tensors, codedTensor(src.folder, w))
	}
	slices.SortFunc(src.tensors, func(a, b Tensor) int { return cmp.Compare(a.Name, b.Name) })
	for _, i := range found.Ignored {
		src.ignored = append(src.ignored, Ignored{fileTensor(src.folder, i.Source), i.Reason})
	}
	src.recognized, src.notes = found.Recognized, found.Notes
}
