// Package image makes a source of an image that holds a model's files, whatever program made it.
//
// Contract:
//
//   - The template, the system prompt, the parameters, the messages and the licenses of the image become commands of a
//     Modelfile. Parameters that ingot does not know are left out and reported.
//   - Files and members of plain tar archives are read where they are in the blobs. Compressed archives are unpacked to
//     a folder of the store, which is removed when the source is closed.
//   - Of several folders in an image, the one with the model is the source.
package image

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/foreign"
	"github.com/ingotml/ingot/manifest/ollama"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/modelfile/parameters"
	"github.com/opencontainers/go-digest"
)

// ErrLayer reports a layer that cannot be read.
var ErrLayer = errors.New("invalid layer of an image")

// Image is an image in a folder of blobs. It opens itself for package convert, under its name.
type Image struct {
	Name  string // for FROM and for messages
	Files *foreign.Image
	Blob  func(digest.Digest) (*os.File, error)
	Read  func(digest.Digest) ([]byte, error) // of a small blob
	Temp  func() (dir string, remove func(), err error)
}

// Stored returns an image whose blobs were pulled into a store.
func Stored(s *store.Store, name manifest.Name, files *foreign.Image) *Image {
	return &Image{Name: name.String(), Files: files, Blob: s.OpenBlob, Temp: func() (string, func(), error) {
		return ingest.Folder(s, nil)
	}, Read: func(d digest.Digest) ([]byte, error) { return s.ReadBlob(d, ollama.MaxRead) }}
}

// Modelfile returns the commands that make the image, and warnings about what is left out.
func (i *Image) Modelfile() (*modelfile.File, []string, error) {
	file := &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: i.Name}}}
	var warnings []string
	if slices.ContainsFunc(i.Files.Layers, func(l foreign.Layer) bool { return l.Role == foreign.Projector }) {
		warnings = append(warnings, "the projector for pictures is not imported: the model reads text only")
	}
	if i.Files.Context > 0 {
		file.Commands = append(file.Commands,
			modelfile.Command{Name: modelfile.Parameter, Key: "num_ctx", Value: fmt.Sprint(i.Files.Context)})
	}
	if !slices.ContainsFunc(i.Files.Layers, func(l foreign.Layer) bool { return l.Role == foreign.Doc }) {
		for _, name := range i.Files.Licenses {
			file.Commands = append(file.Commands, modelfile.Command{Name: modelfile.License, Value: name})
		}
	}
	for _, t := range i.Files.Texts() {
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
			list, left, err = readParameters(text)
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

// readParameters reads Ollama's parameters: numbers, bools, texts and lists of texts by name.
func readParameters(text []byte) (list []modelfile.Command, left []string, err error) {
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
		if p, ok := parameters.Lookup(name); !ok || p.Deprecated {
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
