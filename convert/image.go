package convert

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// A draft is stored in its target's image: its tensors' names start with draftPrefix, its configuration is draftConfig.
const (
	draftPrefix = "draft."
	draftConfig = "draft/" + configName
)

// generated are the files that are generated for each image. They are not copied from a source image.
var generated = []string{indexName, recordName}

// OpenImage opens a model in the store: its configuration, the headers of its blobs, and its other files.
func OpenImage(ctx context.Context, store *store.Store, entry *store.Entry) (*Inventory, error) {
	inv := &Inventory{From: entry.Name.String(), stored: true, image: entry.Digest}
	draft := &Inventory{From: inv.From + " (draft)", stored: true, image: entry.Digest}
	for _, l := range entry.Image.Layers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := inv.addLayer(store, draft, l); err != nil {
			return nil, fmt.Errorf("%s: %w", inv.From, err)
		}
	}
	if err := inv.finish(); err != nil {
		return nil, err
	}
	if len(draft.weights) > 0 {
		inv.Draft = draft
		return inv, draft.finish()
	}
	return inv, nil
}

func (inv *Inventory) addLayer(store *store.Store, draft *Inventory, l manifest.Layer) error {
	if l.Kind == manifest.KindTensor {
		w, err := blobWeight(store, l)
		if err != nil {
			return err
		}
		if name, ok := strings.CutPrefix(l.Name, draftPrefix); ok {
			w.Name = name
			draft.weights = append(draft.weights, w)
		} else {
			inv.weights = append(inv.weights, w)
		}
		return nil
	}
	data, err := store.ReadBlob(l.Digest, maxFile)
	if err != nil {
		return fmt.Errorf("%s: %w", l.Name, err)
	}
	if l.Name == recordName {
		if err := json.Unmarshal(data, &inv.base); err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	if slices.Contains(generated, l.Name) {
		return nil
	}
	f := File{Kind: l.Kind, Name: l.Name, Size: l.Size, Data: data}
	if l.Name == draftConfig {
		f.Name = configName
		draft.Files = append(draft.Files, f)
	} else {
		inv.Files = append(inv.Files, f)
	}
	return nil
}

func (inv *Inventory) finish() error {
	slices.SortFunc(inv.weights, func(a, b weight) int { return cmp.Compare(a.Name, b.Name) })
	config, ok := inv.file(configName)
	if !ok {
		return fmt.Errorf("%s: %w: the image has no %s", inv.From, ErrSource, configName)
	}
	var err error
	if inv.Model, err = arch.Detect(config.Data); err != nil {
		return inv.inFolder(err)
	}
	return nil
}

// blobWeight reads the header of a tensor's blob.
func blobWeight(store *store.Store, l manifest.Layer) (weight, error) {
	f, err := safetensors.Open(store.BlobPath(l.Digest))
	if err != nil {
		return weight{}, fmt.Errorf("tensor %s: %w", l.Name, err)
	}
	defer f.Close()
	w := weight{Name: l.Name, file: string(l.Digest), path: f.Path(), store: store, layer: l}
	t, ok := f.Lookup(l.Name)
	if !ok {
		return w, fmt.Errorf("tensor %s: blob %s: %w: it contains another tensor", l.Name, l.Digest, ErrSource)
	}
	w.DType, w.Shape = t.DType, t.Shape
	if w.quant, err = blobType(f.Header().Metadata); err != nil || w.quant == 0 {
		return w, wrapTensor(l.Name, err)
	}
	if w.Shape, err = w.quant.UnpackedShape(t.Shape); err != nil {
		return w, wrapTensor(l.Name, err)
	}
	w.DType = safetensors.BF16 // formats without floating-point scales do not record it
	if s, ok := f.Lookup(l.Name + scaleSuffix); ok && w.quant.Mode() == "affine" {
		w.DType = s.DType
	}
	w.global, err = readGlobal(f, l.Name)
	return w, wrapTensor(l.Name, err)
}

// globalSuffix is the suffix of the key of a tensor's global scale.
const globalSuffix = ".global_scale"

// readGlobal reads a blob's scale of the whole tensor; 0 if it has none.
func readGlobal(f *safetensors.File, name string) (float32, error) {
	g, ok := f.Lookup(name + globalSuffix)
	if !ok {
		return 0, nil
	}
	if g.DType != safetensors.F32 || g.NumElements() != 1 {
		return 0, fmt.Errorf("%s: %w: its %s is %s %v, want one F32", f.Path(), ErrSource, globalSuffix, g.DType, g.Shape)
	}
	var b [4]byte
	if err := readFull(f.Reader(g), b[:], 0); err != nil {
		return 0, err
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b[:])), nil
}

// blobType returns the type that a blob's metadata states; 0 for a plain tensor.
func blobType(metadata map[string]string) (quantize.Type, error) {
	name := metadata[metaType]
	if name == "" {
		return 0, nil
	}
	t, _, err := quantize.ParseType(name)
	if err != nil {
		return 0, err
	}
	if group := metadata[metaGroup]; group != "" && group != strconv.Itoa(t.Group()) {
		n, _ := strconv.Atoi(group)
		if t = t.WithGroup(n); t == 0 {
			return 0, fmt.Errorf("%w: %s in groups of %q", ErrSource, name, group)
		}
	}
	return t, nil
}

func wrapTensor(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("tensor %s: %w", name, err)
}
