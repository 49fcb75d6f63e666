// Package image makes a source of an Ollama image whose weights are a GGUF file.
//
// Contract:
//
//   - The template, the system prompt, the parameters, the messages and the licenses of the image become commands of a
//     Modelfile. Parameters that ingot does not know are left out and reported.
//   - The GGUF file is read where it is, under the name that its digest gives it.
package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/ingotml/ingot/limits/clip"
	"github.com/ingotml/ingot/limits/pyjson"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/ollama"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/safetensors"
	"github.com/opencontainers/go-digest"
)

// ErrLayer reports a layer that cannot be read.
var ErrLayer = errors.New("invalid layer of a GGUF image")

// Image is an image in a folder of blobs. It opens itself for package convert, under its name.
type Image struct {
	Name string                     // for FROM and for messages
	GGUF *ollama.GGUF               // what it has
	Path func(digest.Digest) string // of a blob
	Read func(digest.Digest) ([]byte, error)
}

// Stored returns an image whose blobs were pulled into a store.
func Stored(s *store.Store, name manifest.Name, g *ollama.GGUF) *Image {
	return &Image{Name: name.String(), GGUF: g, Path: s.BlobPath,
		Read: func(d digest.Digest) ([]byte, error) { return s.ReadBlob(d, ollama.MaxRead) }}
}

// Modelfile returns the commands that make the image, and warnings about what is left out.
func (i *Image) Modelfile() (*modelfile.File, []string, error) {
	file := &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: i.Name}}}
	var warnings []string
	if i.GGUF.Projector {
		warnings = append(warnings, "the projector for pictures is not imported: the model reads text only")
	}
	for _, t := range i.GGUF.Texts {
		text, err := i.Read(t.Digest)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", i.Name, err)
		}
		var list []modelfile.Command
		switch t.Kind {
		case manifest.KindTemplate:
			list = []modelfile.Command{{Name: modelfile.Template, Value: string(text)}}
		case manifest.KindSystem:
			list = []modelfile.Command{{Name: modelfile.System, Value: string(text)}}
		case manifest.KindLicense:
			list = []modelfile.Command{{Name: modelfile.License, Value: string(text)}}
		case manifest.KindMessages:
			list, err = messages(text)
		case manifest.KindParams:
			var left []string
			list, left, err = parameters(text)
			warnings = append(warnings, left...)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w: %s %s: %w", i.Name, ErrLayer, t.Kind, t.Digest, err)
		}
		file.Commands = append(file.Commands, list...)
	}
	return file, warnings, nil
}

func messages(text []byte) ([]modelfile.Command, error) {
	var list []struct{ Role, Content string }
	if err := pyjson.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	var out []modelfile.Command
	for _, m := range list {
		out = append(out, modelfile.Command{Name: modelfile.Message, Key: m.Role, Value: m.Content})
	}
	return out, nil
}

// parameters reads Ollama's parameters: numbers, bools, texts and lists of texts by name.
func parameters(text []byte) (list []modelfile.Command, left []string, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var values map[string]any
	if err := d.Decode(&values); err != nil {
		return nil, nil, errors.New(pyjson.Words(err, text))
	}
	var names []string
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if p, ok := modelfile.LookupParameter(name); !ok || p.Deprecated {
			left = append(left, fmt.Sprintf("the parameter %s has no effect in ingot", clip.Text(name, 80)))
			continue
		}
		each, ok := values[name].([]any)
		if !ok {
			each = []any{values[name]}
		}
		for _, v := range each {
			list = append(list, modelfile.Command{Name: modelfile.Parameter, Key: name, Value: fmt.Sprint(v)})
		}
	}
	return list, left, nil
}

// Names reports whether a value of FROM is the image's name.
func (i *Image) Names(value string) bool { return value == i.Name }

// Open returns the folder of the GGUF file.
func (i *Image) Open(context.Context, string) (safetensors.Folder, error) {
	path := i.Path(i.GGUF.Model.Digest)
	return &folder{image: i.Name, dir: safetensors.Dir(filepath.Dir(path)), blob: filepath.Base(path),
		name: "sha256-" + i.GGUF.Model.Digest.Encoded() + ".gguf"}, nil
}

// folder has one file, which is a blob with another name.
type folder struct {
	image, name, blob string
	dir               safetensors.Dir
}

// Path implements [safetensors.Folder].
func (f *folder) Path(string) string { return f.image }

// Choice names the file.
func (f *folder) Choice() (wanted string, names []string) { return f.name, []string{f.name} }

// Open implements [safetensors.Folder].
func (f *folder) Open(name string) (fs.File, error) {
	if name != f.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return f.dir.Open(f.blob)
}

// Stat implements [safetensors.Folder].
func (f *folder) Stat(name string) (fs.FileInfo, error) {
	if name != f.name {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return f.dir.Stat(f.blob)
}

// ReadDir implements [safetensors.Folder].
func (f *folder) ReadDir(string) ([]fs.DirEntry, error) { return nil, nil }
