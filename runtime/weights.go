package runtime

import (
	"errors"
	"fmt"
	"os"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
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
		err = fmt.Errorf("%w: %w", err, ErrImage)
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
			info.Size(), b.layer.Size, ErrImage)
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
func (b *tensorBlob) info() (arch.TensorInfo, error) {
	dtype, shape, err := b.header.Elements(b.packed)
	return arch.TensorInfo{Name: b.name(), DType: string(dtype), Shape: shape}, err
}

// openBlobs reads the headers of the tensor blobs of the model, or of its draft, and checks them against the
// architecture's tensor table.
func (f files) openBlobs(config arch.Model, draft bool) ([]tensorBlob, error) {
	var blobs []tensorBlob
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
func (b *tensorBlob) load(t *mlx.Thread, float32s bool) (*nn.Tensor, error) {
	file := b.header.Header
	region := mlx.OpenRegion(t, b.path, file.DataOffset, file.Size-file.DataOffset)
	defer region.Close()
	arrays := map[string]*mlx.Array{}
	for suffix, part := range b.header.Arrays {
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
			Scales: arrays[blob.ScaleSuffix], Biases: arrays[blob.BiasSuffix],
			Mode: modes[b.packed.Mode()], Bits: b.packed.Bits(), Group: b.packed.Group(), Global: b.header.Global,
		}
	}
	for _, a := range arrays {
		mlx.Keep(a)
	}
	return tensor, nil
}

// array makes the array of a part. It maps the file, unless the elements are not aligned to their size:
// mlx_save_safetensors, which wrote Ollama's blobs, does not pad the header. Those are copied.
func (b *tensorBlob) array(
	t *mlx.Thread, region *mlx.Region, part safetensors.Tensor, d mlx.DType, shape []int,
) (*mlx.Array, error) {
	size, start := int64(d.Size()), b.header.Header.DataOffset
	if part.Begin%size == 0 && (start+part.Begin)%size == 0 {
		return region.Array(part.Begin, d, shape...), nil
	}
	f, err := os.Open(b.path)
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w", part.Name, err)
	}
	defer f.Close()
	data := make([]byte, part.End-part.Begin)
	if _, err := f.ReadAt(data, start+part.Begin); err != nil {
		return nil, fmt.Errorf("tensor %s: blob %s: %w", part.Name, b.layer.Digest, err)
	}
	return mlx.FromBytes(t, data, d, shape...), nil
}

var modes = map[string]mlx.QuantMode{"affine": mlx.Affine, "mxfp4": mlx.MXFP4, "mxfp8": mlx.MXFP8, "nvfp4": mlx.NVFP4}
