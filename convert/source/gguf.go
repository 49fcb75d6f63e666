package source

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/convert/gguf/checkpoint"
	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/convert/tokens"
	"github.com/ingotml/ingot/internal/limits/filekind"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/safetensors"
)

// Options control how a source is read.
type Options struct {
	// Exact keeps every element of a GGUF file exactly, at the cost of float32 scales, biases and elements.
	Exact bool
	// AnyLinks follows links of local folders to any file; see [safetensors.Dir].
	AnyLinks bool
	// As is the model type to read the checkpoint as, one of [arch.Types], whatever config.json declares; "" = the
	// declared one.
	As string
	// HeadersOnly reads headers and small files, and no data of tensors. [Source.Assumed] lists what depends on data.
	HeadersOnly bool
}

// NamesGGUF reports whether a path is one that GGUF files have, for a file that is to be written.
func NamesGGUF(path string) bool { return checkpoint.HasExtension(path) }

// Roles of GGUF files that are no models.
const (
	Projector = checkpoint.Projector
	LoRA      = checkpoint.LoRA
)

// RoleOf returns what a local GGUF file that the user named is, in words, if it is not a model; "" for a model.
func RoleOf(path string) (checkpoint.Role, error) {
	return checkpoint.RoleOf(safetensors.LocalFile(path, false))
}

// RoleIn is RoleOf for a file of a folder.
func RoleIn(folder safetensors.Folder, name string) (checkpoint.Role, error) {
	return checkpoint.RoleOf(folder, name)
}

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

// WantedRole returns what the GGUF file is that the user named of a folder, as [RoleOf], and its name; "" if the user
// named no file.
func WantedRole(folder safetensors.Folder) (role checkpoint.Role, name string, err error) {
	c, ok := folder.(Chooser)
	if !ok {
		return "", "", nil
	}
	wanted, names := c.Choice()
	for _, name := range names {
		if wanted != "" && (name == wanted || name == wanted+checkpoint.Extension) {
			role, err = checkpoint.RoleOf(folder, name)
			return role, name, err
		}
	}
	return "", "", nil
}

// WeightBytes returns the size of the files that [OpenFolder] reads weights from, before any is read.
func WeightBytes(folder safetensors.Folder) (total int64, err error) {
	entries, err := folder.ReadDir(".")
	if err != nil {
		return 0, err
	}
	var files []string
	wanted := Wanted(folder)
	if wanted == "" {
		files = safetensors.WeightFiles(folder, entries)
	}
	if files == nil {
		if files, _, err = choose(folder, entries, wanted); err != nil {
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
	set, left, err := choose(src.folder, entries, wanted)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return isImported(e.Name()) || e.Name() == chat.AdditionalDir
	})
	if src.Files, err = readFiles(src.folder, entries); err != nil {
		return err
	}
	src.left = left
	return src.openGGUF(set)
}

// ggufIn opens the only GGUF model of the folder, and reports whether there is one.
func (src *Source) ggufIn(entries []fs.DirEntry) (bool, error) {
	set, left, err := choose(src.folder, entries, "")
	if set == nil && err == nil {
		return false, nil
	}
	if err == nil {
		src.left = left
		err = src.openGGUF(set)
	}
	return true, err
}

// choose returns the files of a GGUF model of a folder, and GGUF files that are no models.
func choose(
	folder safetensors.Folder, entries []fs.DirEntry, wanted string,
) (set []string, left []LeftFile, err error) {
	remedy := "name one of the files"
	var names []string
	_, remote := folder.(Remote)
	if r, ok := folder.(interface{ Remedy() string }); ok {
		remedy = r.Remedy()
	}
	if c, ok := folder.(Chooser); ok {
		remedy = "add :TYPE or :FILE to the name, such as :Q4_K_M"
		_, names = c.Choice()
		names = checkpoint.Named(names)
	} else {
		names = ggufFiles(folder, entries)
	}
	sets, err := checkpoint.Sets(names)
	if err == nil && !remote {
		sets, left = modelsOf(folder, sets)
	}
	if err == nil {
		set, err = checkpoint.Choose(sets, wanted)
	}
	if errors.Is(err, safetensors.ErrAmbiguous) {
		err = fmt.Errorf("%w; %s", err, remedy)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w: %w", folder.Path("."), ErrSource, err)
	}
	return set, left, nil
}

// ggufFiles returns the names of a folder's GGUF files, or if there are none, of the files that are named so: they are
// damaged, and their reader says how.
func ggufFiles(folder safetensors.Folder, entries []fs.DirEntry) []string {
	var names, found []string
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		names = append(names, e.Name())
		kind, err := safetensors.KindOf(folder, e.Name())
		switch {
		case err == nil && kind.Kind == filekind.GGUF,
			errors.Is(err, safetensors.ErrOutside) && checkpoint.HasExtension(e.Name()): // whose reader says so
			found = append(found, e.Name())
		}
	}
	if found == nil {
		return checkpoint.Named(names)
	}
	return found
}

// modelsOf returns the sets of files that are models, and the others, if there are any beside a model.
func modelsOf(folder safetensors.Folder, sets [][]string) (models [][]string, left []LeftFile) {
	if len(sets) < 2 {
		return sets, nil
	}
	for _, set := range sets {
		role, err := checkpoint.RoleOf(folder, set[0])
		if err != nil || role == "" { // the reader says what is wrong with it
			models = append(models, set)
			continue
		}
		file := LeftFile{Name: set[0], Why: "it is " + string(role)}
		for _, name := range set {
			if info, err := folder.Stat(name); err == nil {
				file.Size += info.Size()
			}
		}
		left = append(left, file)
	}
	if models == nil {
		return sets, nil
	}
	return models, left
}

// openGGUF opens the files of a model. What they say replaces the folder's files, except for documents.
func (src *Source) openGGUF(names []string) error {
	if src.options.As != "" {
		return fmt.Errorf("%s: %w: a GGUF file's architecture names its metadata and tensors, so it cannot be read as %s; "+
			"use the model's safetensors checkpoint", src.From, ErrSource, src.options.As)
	}
	o := checkpoint.Options{Exact: src.options.Exact, HeadersOnly: src.options.HeadersOnly}
	c, err := checkpoint.Open(src.folder, names, o)
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
		return slices.Concat(src.notes, src.unreadNote())
	}
	return slices.Concat(src.gguf.Notes, src.notes)
}

// HeadersOnly reports whether no data of tensors may be read.
func (src *Source) HeadersOnly() bool { return src.options.HeadersOnly }

// Assumed lists what depends on data that was not read ([Options.HeadersOnly]).
func (src *Source) Assumed() []string { return src.assumed }

// addFound adds what a checkpoint has.
func (src *Source) addFound(found packed.Result) {
	src.tensors = append(src.tensors, tensorsOf(src.folder, found)...)
	wants := func(string) bool { return false }
	if slices.ContainsFunc(found.Ignored, func(i packed.Ignored) bool { return i.Assumed }) {
		names := src.Model.Table().Names()
		wants = func(name string) bool { _, ok := names.Canonical(name); return ok }
	}
	for _, i := range found.Ignored {
		// Only data could tell whether it is needless, unless the table has it.
		if t := fileTensor(src.folder, i.Source); i.Assumed && wants(i.Name) {
			src.tensors = append(src.tensors, t)
		} else {
			src.ignored = append(src.ignored, Ignored{Tensor: t, Reason: i.Reason})
		}
	}
	slices.SortFunc(src.tensors, func(a, b Tensor) int { return cmp.Compare(a.Name, b.Name) })
	src.recognized, src.assumed = found.Recognized, found.Assumed
	src.notes = append(src.notes, found.Notes...)
}

// tensorsOf returns the tensors of a checkpoint, sorted by name.
func tensorsOf(folder safetensors.Folder, found packed.Result) []Tensor {
	list := make([]Tensor, 0, len(found.Plain)+len(found.Weights))
	for _, s := range found.Plain {
		list = append(list, fileTensor(folder, s))
	}
	for i := range found.Weights {
		list = append(list, codedTensor(folder, &found.Weights[i]))
	}
	slices.SortFunc(list, func(a, b Tensor) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
