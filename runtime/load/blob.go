package load

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/processor"
)

// tensorBlob is the header of the blob of a tensor that the model runs with.
type tensorBlob struct {
	layer  manifest.Layer
	path   string
	header *blob.Blob
	packed quantize.Type // 0 if not quantized
}

// openBlob reads the header of a blob, which must hold the tensor of the layer's name and nothing else.
func openBlob(store *store.Store, l manifest.Layer) (tensorBlob, error) {
	b := tensorBlob{layer: l, path: store.BlobPath(l.Digest)}
	err := b.open(store)
	var wrong *blob.FormatError
	if errors.As(err, &wrong) {
		err = fmt.Errorf("%w: %w", err, runtime.ErrImage)
	}
	if err != nil {
		return b, fmt.Errorf("tensor %s: blob %s: %w", l.Name, l.Digest, err)
	}
	return b, nil
}

func (b *tensorBlob) open(store *store.Store) error {
	f, err := store.OpenBlob(b.layer.Digest)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() != b.layer.Size {
		return fmt.Errorf("it has %d bytes, the manifest says %d (`ingot fsck --repair` puts the store right): %w",
			info.Size(), b.layer.Size, runtime.ErrImage)
	}
	if b.header, err = blob.Read(f, info.Size(), b.layer.Name); err != nil {
		return err
	}
	b.packed, err = b.header.Check()
	return err
}

// name returns the tensor's name in its own model, which may be a draft.
func (b *tensorBlob) name() string {
	name, _ := blob.CutDraft(b.layer.Name)
	return name
}

// info returns the entry to check against the architecture's tensor table.
func (b *tensorBlob) info() (table.TensorInfo, error) {
	dtype, shape, err := b.header.Elements(b.packed)
	return table.TensorInfo{Name: b.name(), DType: string(dtype), Shape: shape}, err
}

// tensorLayers returns the tensor blobs of the image's model, or of its draft, sorted by name.
func tensorLayers(image manifest.Image, draft bool) []manifest.Layer {
	var layers []manifest.Layer
	for _, l := range image.Layers {
		if l.Kind == manifest.KindTensor && blob.IsDraft(l.Name) == draft {
			layers = append(layers, l)
		}
	}
	slices.SortFunc(layers, func(a, b manifest.Layer) int { return strings.Compare(a.Name, b.Name) })
	return layers
}

// openBlobs reads the headers of the tensor blobs of the model, or of its draft, and checks them against the
// architecture's tensor table.
func openBlobs(f processor.Files, config arch.Model, draft bool) ([]tensorBlob, error) {
	var blobs []tensorBlob
	var have []table.TensorInfo
	for _, l := range tensorLayers(f.Image, draft) {
		b, err := openBlob(f.Store, l)
		if err != nil {
			return nil, err
		}
		i, err := b.info()
		if err != nil {
			return nil, err
		}
		blobs, have = append(blobs, b), append(have, i)
	}
	if _, err := config.Table().Check(have); err != nil {
		return nil, err
	}
	return blobs, nil
}

// CheckTensors reads the headers of an image's tensor blobs, and those of its draft's, and checks them against the
// architecture's tensor table. It returns their number.
func CheckTensors(f processor.Files, config arch.Model) (int, error) {
	blobs, err := openBlobs(f, config, false)
	if err != nil {
		return 0, err
	}
	draft, err := OpenDraft(f, config)
	if err != nil {
		return 0, err
	}
	return len(blobs) + len(draft.blobs), nil
}
