package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	modelspec "github.com/modelpack/model-spec/specs-go/v1"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// rawParts are the parts that show prints byte for byte. Every manifest has them.
var rawParts = []struct {
	flag, help string
	print      func(*app, *shown) error
}{
	{"manifest", "the manifest, byte for byte", func(a *app, m *shown) error {
		_, err := a.out.Write(m.raw.Bytes)
		return err
	}},
	{"config", "the config blob, byte for byte", func(a *app, m *shown) error {
		config := m.contents().Config
		if config.Digest == "" {
			return fmt.Errorf("%s has no config", m.raw.Name)
		}
		b, err := m.store.ReadBlob(config.Digest, manifest.MaxConfigSize)
		if err != nil {
			return fmt.Errorf("config of %s: %w", m.raw.Name, err)
		}
		_, err = a.out.Write(b)
		return err
	}},
}

// listPart is a list that show can print.
type listPart struct {
	flag, help string
	print      func(context.Context, showOutput, *shown) error
}

// listParts are the lists that show can print.
var listParts = []listPart{
	{"layers", "the layers: digests, sizes, types", printLayers},
	{"tensors", "the tensors: types, shapes, quantization", printTensors},
	{"certificates", "the certificates: divergence from a base", printCertificates},
	{"provenance", "the source files and tensors with their checksums", printProvenance},
}

// contents holds the descriptors of a manifest or an index of any kind. It is empty for a manifest that is not JSON.
type contents struct {
	MediaType    string               `json:"mediaType"`
	ArtifactType string               `json:"artifactType"`
	Config       ocispec.Descriptor   `json:"config"`
	Layers       []ocispec.Descriptor `json:"layers"`
	Manifests    []ocispec.Descriptor `json:"manifests"`
	Subject      *ocispec.Descriptor  `json:"subject"`
	Annotations  map[string]string    `json:"annotations"`
}

func (m *shown) contents() contents { return contentsOf(m.raw.Bytes) }

func contentsOf(manifestBytes []byte) contents {
	var c contents
	_ = json.Unmarshal(manifestBytes, &c)
	return c
}

type layerJSON struct {
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
	MediaType string `json:"media_type"`
	Kind      string `json:"kind"` // ingot's kind: tensor, file, license...
	Name      string `json:"name"` // tensor name or file path
}

// layers lists the layers of a manifest, or the manifests of an index.
func (m *shown) layers() ([]layerJSON, error) {
	entry, err := m.store.Entry(m.raw)
	if err != nil && !errors.Is(err, manifest.ErrUnknownManifest) && !errors.Is(err, manifest.ErrBlobMissing) {
		return nil, err
	}
	if entry == nil {
		return m.contents().layers(nil), nil
	}
	return m.contents().layers(entry.Image.Layers), nil
}

// layers lists the layers, or the manifests of an index. known are the layers of a model image, in the same order.
func (c contents) layers(known []manifest.Layer) []layerJSON {
	list := []layerJSON{}
	for i, d := range c.Layers {
		l := layerJSON{Digest: d.Digest.String(), Size: d.Size, MediaType: d.MediaType,
			Name: cmp.Or(d.Annotations[modelspec.AnnotationFilepath], d.Annotations[ocispec.AnnotationTitle])}
		if i < len(known) {
			l.Kind, l.Name = string(known[i].Kind), known[i].Name
		}
		list = append(list, l)
	}
	for _, d := range c.Manifests {
		l := layerJSON{Digest: d.Digest.String(), Size: d.Size, MediaType: d.MediaType, Kind: "manifest"}
		if p := d.Platform; p != nil {
			l.Name = p.OS + "/" + p.Architecture
		}
		list = append(list, l)
	}
	return list
}

func printLayers(_ context.Context, o showOutput, m *shown) error {
	list, err := m.layers()
	if err != nil {
		return err
	}
	switch {
	case o.json:
		return o.printJSON(list)
	case o.template != nil:
		return printEach(o.app, o.template, list...)
	}
	return o.printLayers(list)
}

func (a *app) printLayers(list []layerJSON) error {
	w := newTable(a.out)
	w.row("DIGEST", "SIZE", "KIND", "MEDIA TYPE", "NAME")
	for _, l := range list {
		w.row(short(l.Digest), size(l.Size), l.Kind, l.MediaType, l.Name)
	}
	return w.flush()
}

type tensorJSON struct {
	Name         string  `json:"name"`
	DType        string  `json:"dtype"`
	Shape        []int64 `json:"shape"`
	Quantization string  `json:"quantization,omitempty"`
	Size         int64   `json:"size"`
	Digest       string  `json:"digest"` // of the blob
}

func printTensors(ctx context.Context, o showOutput, m *shown) error {
	entry, err := m.store.Entry(m.raw)
	if err != nil {
		return err
	}
	tensors, err := source.ReadTensors(ctx, m.store, entry)
	if err != nil {
		return listAbsent(ctx, m.store, entry.Name, err)
	}
	list := []tensorJSON{}
	for _, t := range tensors {
		j := tensorJSON{
			Name:   t.Name,
			DType:  string(t.DType),
			Shape:  append([]int64{}, t.Shape...),
			Size:   t.Bytes,
			Digest: t.Blob.Digest.String(),
		}
		if t.Type != 0 {
			j.Quantization = t.Type.String()
		}
		list = append(list, j)
	}
	switch {
	case o.json:
		return o.printJSON(list)
	case o.template != nil:
		return printEach(o.app, o.template, list...)
	}
	w := newTable(o.out)
	w.row("NAME", "TYPE", "SHAPE", "QUANTIZATION", "SIZE")
	for _, t := range list {
		w.row(t.Name, t.DType, shape(t.Shape), t.Quantization, size(t.Size))
	}
	return w.flush()
}

// unknownJSON describes a manifest that is not a model image.
type unknownJSON struct {
	Name         string      `json:"name"`
	Digest       string      `json:"digest"`
	MediaType    string      `json:"media_type"`
	ArtifactType string      `json:"artifact_type,omitempty"`
	ConfigType   string      `json:"config_type,omitempty"`
	Subject      string      `json:"subject,omitempty"`
	Size         int64       `json:"size"`
	Unknown      string      `json:"unknown"` // why it cannot be run
	Layers       []layerJSON `json:"layers"`
	Imports      string      `json:"-"` // what it is, if it holds a model's files
}

// printUnknown prints a manifest that is not a model image.
func printUnknown(o showOutput, m *shown, why error) error {
	layers, err := m.layers()
	if err != nil {
		return err
	}
	u, err := unknown(m.raw.Name, m.raw.Descriptor, m.raw.Bytes, layers, why)
	if err != nil {
		return err
	}
	return printShown(o, u, u.print)
}

// unknown describes a manifest that is not a model image, and why.
func unknown(
	name manifest.Name, d ocispec.Descriptor, manifestBytes []byte, layers []layerJSON, why error,
) (unknownJSON, error) {
	var unknown *manifest.UnknownManifestError
	if errors.As(why, &unknown) {
		why = unknown
	}
	c := contentsOf(manifestBytes)
	u := unknownJSON{
		Name: name.String(), Digest: d.Digest.String(), MediaType: cmp.Or(c.MediaType, d.MediaType),
		ArtifactType: c.ArtifactType, ConfigType: c.Config.MediaType, Unknown: why.Error(), Layers: layers,
	}
	if c.Subject != nil {
		u.Subject = c.Subject.Digest.String()
	}
	blobs, err := manifest.Blobs(manifestBytes)
	for _, b := range blobs {
		u.Size += b.Size
	}
	return u, err
}

func (u unknownJSON) print(a *app) error {
	w := newTable(a.out)
	u.rows(w)
	if err := w.flush(); err != nil || len(u.Layers) == 0 {
		return err
	}
	fmt.Fprintln(a.out)
	return a.printLayers(u.Layers)
}

// runs says whether the image runs.
func (u unknownJSON) runs() string {
	if u.Imports != "" {
		return "converted, as `ingot run` and `ingot pull` do it: " + u.Imports
	}
	return "no: " + u.Unknown
}

func (u unknownJSON) rows(w table) {
	for _, l := range [][2]string{
		{"name", u.Name},
		{"digest", u.Digest},
		{"media type", u.MediaType},
		{"artifact type", u.ArtifactType},
		{"config type", u.ConfigType},
		{"subject", u.Subject},
		{"size", fmt.Sprintf("%s; layers: %d", size(u.Size), len(u.Layers))},
		{"runs", u.runs()},
	} {
		if l[1] != "" {
			w.row(l[0], l[1])
		}
	}
}
