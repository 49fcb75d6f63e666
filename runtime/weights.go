package runtime

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

var dtypes = map[safetensors.DType]mlx.DType{
	"BOOL": mlx.Bool, "U8": mlx.Uint8, "U16": mlx.Uint16, "U32": mlx.Uint32, "U64": mlx.Uint64, "I8": mlx.Int8,
	"I16": mlx.Int16, "I32": mlx.Int32, "I64": mlx.Int64, "F16": mlx.Float16, "BF16": mlx.BFloat16, "F32": mlx.Float32,
	"F64": mlx.Float64,
}

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
func openBlob(store *store.Store, l manifest.Layer) (blob, error) {
	b := blob{layer: l, path: store.BlobPath(l.Digest), parts: map[string]safetensors.Tensor{}}
	err := b.open(store)
	if err != nil {
		return b, fmt.Errorf("tensor %s: blob %s: %w", l.Name, l.Digest, err)
	}
	return b, nil
}

func (b *blob) open(store *store.Store) error {
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
			info.Size(), b.layer.Size, ErrImage)
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
			return fmt.Errorf("it also holds %s: a model runs only from one blob per tensor: %w", t.Name, ErrImage)
		}
		b.parts[suffix] = t
	}
	if _, ok := b.parts[""]; !ok {
		return fmt.Errorf("it does not hold the tensor: %w", ErrImage)
	}
	return b.readFormat()
}

// readGlobal reads the scale of a whole tensor.
func readGlobal(f io.ReaderAt, h *safetensors.Header, t safetensors.Tensor) (float32, error) {
	if t.DType != "F32" || t.Size() != 4 {
		return 0, fmt.Errorf("%s is %s %v, want one F32: %w", t.Name, t.DType, t.Shape, ErrImage)
	}
	var buf [4]byte
	if _, err := f.ReadAt(buf[:], h.DataOffset+t.Begin); err != nil {
		return 0, fmt.Errorf("%s: %w", t.Name, err)
	}
	g := math.Float32frombits(binary.LittleEndian.Uint32(buf[:]))
	if !(g > 0 && g <= math.MaxFloat32) {
		return 0, fmt.Errorf("%s is %v, want a positive number: %w", t.Name, g, ErrImage)
	}
	return g, nil
}

// readFormat reads the quantization format, and checks that all parts of the tensor have the right types and shapes.
func (b *blob) readFormat() error {
	name, ok := b.header.Metadata[metaType]
	if !ok {
		if len(b.parts) > 1 || b.global != 0 {
			return fmt.Errorf("it holds scales but no %s: %w", metaType, ErrImage)
		}
		return nil
	}
	t, _, err := quantize.ParseType(name)
	if err != nil {
		return fmt.Errorf("%s: %w", metaType, err)
	}
	if g, err := strconv.Atoi(b.header.Metadata[metaGroup]); err == nil && g != t.Group() {
		if t = t.WithGroup(g); t == 0 {
			return fmt.Errorf("%s %s with %s %d: %w", metaType, name, metaGroup, g, ErrImage)
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
				part.DType, part.Shape, ErrImage)
		}
	}
	if b.global != 0 && t != quantize.NVFP4 {
		return fmt.Errorf("it has a scale of the whole tensor, which %s does not use: %w", t, ErrImage)
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

// openBlobs reads the headers of the tensor blobs of the model, or of its draft, and checks them against the
// architecture's tensor table.
func (f files) openBlobs(config arch.Model, draft bool) ([]blob, error) {
	var blobs []blob
	var have []arch.TensorInfo
	for _, l := range f.tensorLayers(draft) {
		b, err := openBlob(f.store, l)
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

// load makes the kept arrays of a blob. It runs on the engine's thread.
func (b *blob) load(t *mlx.Thread, float32s bool) (*nn.Tensor, error) {
	region := mlx.OpenRegion(t, b.path, b.header.DataOffset, b.header.Size-b.header.DataOffset)
	defer region.Close()
	arrays := map[string]*mlx.Array{}
	for suffix, part := range b.parts {
		d, ok := dtypes[part.DType]
		if !ok {
			return nil, fmt.Errorf("tensor %s: type %s is not supported: %w", part.Name, part.DType, ErrImage)
		}
		shape := make([]int, len(part.Shape))
		for i, n := range part.Shape {
			shape[i] = int(n)
		}
		a, err := b.array(t, region, part, d, shape)
		if err != nil {
			return nil, err
		}
		if float32s && d.Float() && d != mlx.Float32 {
			a = mlx.AsType(a, mlx.Float32)
			mlx.Eval(a) // unmaps the original
		}
		arrays[suffix] = a
	}
	tensor := &nn.Tensor{Array: arrays[""]}
	if b.packed != 0 {
		tensor.Packed = &nn.Packed{
			Scales: arrays[".scale"], Biases: arrays[".bias"],
			Mode: modes[b.packed.Mode()], Bits: b.packed.Bits(), Group: b.packed.Group(), Global: b.global,
		}
	}
	for _, a := range arrays {
		mlx.Keep(a)
	}
	return tensor, nil
}

// array makes the array of a part. It maps the file, unless the elements are not aligned to their size:
// mlx_save_safetensors, which wrote Ollama's blobs, does not pad the header. Those are copied.
func (b *blob) array(t *mlx.Thread, region *mlx.Region, part safetensors.Tensor, d mlx.DType, shape []int) (*mlx.Array,
	error) {
	size := int64(d.Size())
	if part.Begin%size == 0 && (b.header.DataOffset+part.Begin)%size == 0 {
		return region.Array(part.Begin, d, shape...), nil
	}
	f, err := os.Open(b.path)
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w", part.Name, err)
	}
	defer f.Close()
	data := make([]byte, part.End-part.Begin)
	if _, err := f.ReadAt(data, b.header.DataOffset+part.Begin); err != nil {
		return nil, fmt.Errorf("tensor %s: blob %s: %w", part.Name, b.layer.Digest, err)
	}
	return mlx.FromBytes(t, data, d, shape...), nil
}

var modes = map[string]mlx.QuantMode{"affine": mlx.Affine, "mxfp4": mlx.MXFP4, "mxfp8": mlx.MXFP8, "nvfp4": mlx.NVFP4}
