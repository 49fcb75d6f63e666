package load

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/safetensors"
)

// blob is the header of a tensor blob. The blob holds the tensor's elements under its name; if it is quantized, it
// holds codes instead, and scales and biases in further entries.
type blob struct {
	layer  manifest.Layer
	path   string
	header *safetensors.Header
	parts  map[string]safetensors.Tensor // by suffix of the name: "", ".scale", ".bias"
	packed quantize.Type                 // 0 if not quantized
	global float32                       // scale of the whole tensor (nvfp4); 0: none
}

// Keys of a blob's metadata.
const (
	metaType  = "quant_type"
	metaGroup = "group_size"
)

// openBlob reads the header of a blob, which must hold the tensor of the layer's name and nothing else.
func openBlob(store *manifest.Store, l manifest.Layer) (blob, error) {
	b := blob{layer: l, path: store.BlobPath(l.Digest), parts: map[string]safetensors.Tensor{}}
	err := b.open(store)
	if err != nil {
		return b, fmt.Errorf("tensor %s: blob %s: %w", l.Name, l.Digest, err)
	}
	return b, nil
}

func (b *blob) open(store *manifest.Store) error {
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
	if b.header, err = safetensors.ReadHeader(f, info.Size()); err != nil {
		return err
	}
	for _, t := range b.header.Tensors {
		suffix, ok := strings.CutPrefix(t.Name, b.layer.Name)
		if ok && suffix == ".global_scale" {
			if b.global, err = readGlobal(f, b.header, t); err != nil {
				return err
			}
			continue
		}
		if !ok || !slices.Contains([]string{"", ".scale", ".bias"}, suffix) {
			return fmt.Errorf("it also holds %s: a model runs only from one blob per tensor: %w", t.Name, runtime.ErrImage)
		}
		b.parts[suffix] = t
	}
	if _, ok := b.parts[""]; !ok {
		return fmt.Errorf("it does not hold the tensor: %w", runtime.ErrImage)
	}
	return b.readFormat()
}

// readGlobal reads the scale of a whole tensor.
func readGlobal(f io.ReaderAt, h *safetensors.Header, t safetensors.Tensor) (float32, error) {
	if t.DType != "F32" || t.Size() != 4 {
		return 0, fmt.Errorf("%s is %s %v, want one F32: %w", t.Name, t.DType, t.Shape, runtime.ErrImage)
	}
	var buf [4]byte
	if _, err := f.ReadAt(buf[:], h.DataOffset+t.Begin); err != nil {
		return 0, fmt.Errorf("%s: %w", t.Name, err)
	}
	g := math.Float32frombits(binary.LittleEndian.Uint32(buf[:]))
	if !(g > 0 && g <= math.MaxFloat32) {
		return 0, fmt.Errorf("%s is %v, want a positive number: %w", t.Name, g, runtime.ErrImage)
	}
	return g, nil
}

// readFormat reads the quantization format, and checks that all parts of the tensor have the right types and shapes.
func (b *blob) readFormat() error {
	name, ok := b.header.Metadata[metaType]
	if !ok {
		if len(b.parts) > 1 || b.global != 0 {
			return fmt.Errorf("it holds scales but no %s: %w", metaType, runtime.ErrImage)
		}
		return nil
	}
	t, _, err := quantize.ParseType(name)
	if err != nil {
		return fmt.Errorf("%s: %w", metaType, err)
	}
	if g, err := strconv.Atoi(b.header.Metadata[metaGroup]); err == nil && g != t.Group() {
		if t = t.WithGroup(g); t == 0 {
			return fmt.Errorf("%s %s with %s %d: %w", metaType, name, metaGroup, g, runtime.ErrImage)
		}
	}
	shape, err := t.UnpackedShape(b.parts[""].Shape)
	if err != nil {
		return err
	}
	scales := b.parts[".scale"]
	want, err := t.Parts(sourceType(scales), shape)
	if err != nil {
		return err
	}
	for suffix, part := range map[string]quantize.Part{"": want.Packed, ".scale": want.Scales, ".bias": want.Biases} {
		if got := b.parts[suffix]; string(got.DType) != string(part.DType) || !slices.Equal(got.Shape, part.Shape) {
			return fmt.Errorf("%s%s is %s %v, want %s %v: %w", b.layer.Name, suffix, got.DType, got.Shape,
				part.DType, part.Shape, runtime.ErrImage)
		}
	}
	if b.global != 0 && t != quantize.NVFP4 {
		return fmt.Errorf("it has a scale of the whole tensor, which %s does not use: %w", t, runtime.ErrImage)
	}
	b.packed = t
	return nil
}

// sourceType returns the type of the unquantized weights: affine scales have the same type, other formats do not record
// it.
func sourceType(scales safetensors.Tensor) quantize.DType {
	if scales.DType == "U8" {
		return quantize.BF16
	}
	return quantize.DType(scales.DType)
}

// name returns the tensor's name in its own model, which may be a draft.
func (b *blob) name() string { return strings.TrimPrefix(b.layer.Name, draftPrefix) }

// info returns the entry to check against the architecture's tensor table.
func (b *blob) info() (arch.TensorInfo, error) {
	t := b.parts[""]
	i := arch.TensorInfo{Name: b.name(), DType: string(t.DType), Shape: t.Shape}
	if b.packed == 0 {
		return i, nil
	}
	i.DType = string(sourceType(b.parts[".scale"]))
	var err error
	i.Shape, err = b.packed.UnpackedShape(t.Shape)
	return i, err
}

// tensorLayers returns the tensor blobs of the image's model, or of its draft, sorted by name.
func tensorLayers(image manifest.Image, draft bool) []manifest.Layer {
	var layers []manifest.Layer
	for _, l := range image.Layers {
		if l.Kind == manifest.KindTensor && strings.HasPrefix(l.Name, draftPrefix) == draft {
			layers = append(layers, l)
		}
	}
	slices.SortFunc(layers, func(a, b manifest.Layer) int { return strings.Compare(a.Name, b.Name) })
	return layers
}

// openBlobs reads the headers of the tensor blobs of the model, or of its draft, and checks them against the
// architecture's tensor table.
func openBlobs(f processor.Files, config arch.Model, draft bool) ([]blob, error) {
	var blobs []blob
	var have []arch.TensorInfo
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
