package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/cli/view"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
)

// rawParts are the parts that show prints byte for byte. Every manifest has them.
var rawParts = []struct {
	flag, help string
	print      func(*cli.App, *shown) error
}{
	{"manifest", "the manifest, byte for byte", func(a *cli.App, m *shown) error {
		_, err := a.Out.Write(m.raw.Bytes)
		return err
	}},
	{"config", "the config blob, byte for byte", func(a *cli.App, m *shown) error {
		config := m.contents().Config
		if config.Digest == "" {
			return fmt.Errorf("%s has no config", m.raw.Name)
		}
		b, err := m.store.ReadBlob(config.Digest, manifest.MaxConfigSize)
		if err != nil {
			return fmt.Errorf("config of %s: %w", m.raw.Name, err)
		}
		_, err = a.Out.Write(b)
		return err
	}},
}

// listPart is a list that show can print.
type listPart struct {
	flag, help string
	print      func(context.Context, cli.Output, *shown) error
}

// listParts are the lists that show can print.
var listParts = []listPart{
	{"layers", "the layers: digests, sizes, types", printLayers},
	{"tensors", "the tensors: types, shapes, quantization", printTensors},
	{"certificates", "the certificates: divergence from a base", printCertificates},
	{"provenance", "the source files and tensors with their checksums", printProvenance},
}

func (m *shown) contents() view.Contents { return view.ContentsOf(m.raw.Bytes) }

// layers lists the layers of a manifest, or the manifests of an index.
func (m *shown) layers() ([]view.Layer, error) {
	entry, err := m.store.Entry(m.raw)
	if err != nil && !errors.Is(err, manifest.ErrUnknownManifest) && !errors.Is(err, manifest.ErrBlobMissing) {
		return nil, err
	}
	if entry == nil {
		return m.contents().List(nil), nil
	}
	return m.contents().List(entry.Image.Layers), nil
}

func printLayers(_ context.Context, o cli.Output, m *shown) error {
	list, err := m.layers()
	if err != nil {
		return err
	}
	switch {
	case o.JSON:
		return o.PrintJSON(list)
	case o.Template != nil:
		return cli.PrintEach(o.App, o.Template, list...)
	}
	return view.PrintLayers(o.App, list)
}

type tensorJSON struct {
	Name         string  `json:"name"`
	DType        string  `json:"dtype"`
	Shape        []int64 `json:"shape"`
	Quantization string  `json:"quantization,omitempty"`
	Size         int64   `json:"size"`
	Digest       string  `json:"digest"` // of the blob
}

func printTensors(ctx context.Context, o cli.Output, m *shown) error {
	entry, err := m.store.Entry(m.raw)
	if err != nil {
		return err
	}
	tensors, err := source.ReadTensors(ctx, m.store, entry)
	if err != nil {
		return models.ListAbsent(ctx, m.store, entry.Name, err)
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
	case o.JSON:
		return o.PrintJSON(list)
	case o.Template != nil:
		return cli.PrintEach(o.App, o.Template, list...)
	}
	w := cli.NewTable(o.Out)
	w.Row("NAME", "TYPE", "SHAPE", "QUANTIZATION", "SIZE")
	for _, t := range list {
		w.Row(t.Name, t.DType, cli.Shape(t.Shape), t.Quantization, cli.Size(t.Size))
	}
	return w.Flush()
}

// printUnknown prints a manifest that is not a model image.
func printUnknown(o cli.Output, m *shown, why error) error {
	layers, err := m.layers()
	if err != nil {
		return err
	}
	u, err := view.DescribeUnknown(m.raw.Name, m.raw.Descriptor, m.raw.Bytes, layers, why)
	if err != nil {
		return err
	}
	return cli.Print(o, u, u.Print)
}
