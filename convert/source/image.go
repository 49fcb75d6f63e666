package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
)

// generated are the files that are generated for each image. They are not copied from a source image.
var generated = []string{IndexName, settings.RecordName}

// OpenImage opens a model in the store: its configuration, the headers of its blobs, and its other files. Tensors that
// were not verified since their last change are compared with their digests first, unless only headers are read.
func OpenImage(ctx context.Context, store *store.Store, entry *store.Entry, o Options) (*Source, error) {
	src := &Source{From: entry.Name.String(), image: entry.Digest, options: o}
	if !o.HeadersOnly {
		if err := store.VerifyBlobs(ctx, entry.Image.Blobs()...); err != nil {
			return nil, fmt.Errorf("%s: %w", src.From, err)
		}
	}
	draft := &Source{From: src.From + " (draft)", image: entry.Digest}
	for _, l := range entry.Image.Layers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := src.addLayer(store, draft, l); err != nil {
			return nil, fmt.Errorf("%s: %w", src.From, err)
		}
	}
	if err := src.finish(); err != nil {
		return nil, err
	}
	if len(draft.tensors) > 0 {
		src.Draft = draft
		return src, draft.finish()
	}
	return src, nil
}

func (src *Source) addLayer(store *store.Store, draft *Source, l manifest.Layer) error {
	if l.Kind == manifest.KindTensor {
		t, err := blobTensor(store, l)
		if err != nil {
			return err
		}
		if name, ok := blob.CutDraft(l.Name); ok {
			t.Name = name
			draft.tensors = append(draft.tensors, t)
		} else {
			src.tensors = append(src.tensors, t)
		}
		return nil
	}
	data, err := store.ReadBlob(l.Digest, pyjson.MostBytes(l.Name))
	if err == nil {
		err = pyjson.Bound(l.Name, data)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", l.Name, err)
	}
	if l.Name == settings.RecordName {
		if err := pyjson.Unmarshal(data, &src.record); err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	if slices.Contains(generated, l.Name) {
		return nil
	}
	f := File{Kind: l.Kind, Name: l.Name, Size: l.Size, Data: data}
	if l.Name == blob.DraftConfig {
		f.Name = ConfigName
		draft.Files = append(draft.Files, f)
	} else {
		src.Files = append(src.Files, f)
	}
	return nil
}

func (src *Source) finish() error {
	slices.SortFunc(src.tensors, func(a, b Tensor) int { return cmp.Compare(a.Name, b.Name) })
	if _, ok := src.File(ConfigName); !ok {
		return fmt.Errorf("%s: %w: the image has no %s", src.From, ErrSource, ConfigName)
	}
	if err := src.detect(); err != nil {
		return src.Located(err)
	}
	return nil
}

// blobTensor reads the header of a tensor's blob.
func blobTensor(store *store.Store, l manifest.Layer) (Tensor, error) {
	path := store.BlobPath(l.Digest)
	b, err := blob.Open(path, l.Name)
	if err != nil {
		return Tensor{}, InTensor(l.Name, inSource(err))
	}
	t := Tensor{
		Name: l.Name, File: string(l.Digest), Path: path, Header: b, Global: b.Global, place: stored{path: path, layer: l},
	}
	if _, ok := b.Arrays[""]; !ok {
		return t, fmt.Errorf("tensor %s: blob %s: %w: it contains another tensor", l.Name, l.Digest, ErrSource)
	}
	if t.Quant, err = b.Type(); err == nil {
		t.DType, t.Shape, err = b.Elements(t.Quant)
	}
	return t, InTensor(l.Name, inSource(err))
}

// inSource marks a damaged blob as a source that cannot be imported.
func inSource(err error) error {
	var wrong *blob.FormatError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%w: %w", ErrSource, err)
	}
	return err
}

// InTensor prefixes an error with a tensor's name.
func InTensor(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("tensor %s: %w", name, err)
}
