package runtime

import (
	"fmt"
	"os"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/safetensors"
)

var dtypes = map[safetensors.DType]mlx.DType{
	"BOOL": mlx.Bool, "U8": mlx.Uint8, "U16": mlx.Uint16, "U32": mlx.Uint32, "U64": mlx.Uint64, "I8": mlx.Int8,
	"I16": mlx.Int16, "I32": mlx.Int32, "I64": mlx.Int64, "F16": mlx.Float16, "BF16": mlx.BFloat16, "F32": mlx.Float32,
	"F64": mlx.Float64,
}

// blob is the header of one tensor blob.
type blob struct {
	layer  manifest.Layer
	path   string
	header *safetensors.Header
}

// openBlob reads a blob's header. The blob holds the tensor of the layer's name and nothing that does not belong to it.
func openBlob(store *manifest.Store, l manifest.Layer) (blob, error) {
	f, err := store.OpenBlob(l.Digest)
	if err != nil {
		return blob{}, fmt.Errorf("tensor %s: %w", l.Name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return blob{}, fmt.Errorf("tensor %s: %w", l.Name, err)
	}
	if info.Size() != l.Size {
		return blob{}, fmt.Errorf("tensor %s: blob %s has %d bytes, the manifest says %d: %w", l.Name, l.Digest, info.Size(), l.Size, ErrImage)
	}
	h, err := safetensors.ReadHeader(f, info.Size())
	if err != nil {
		return blob{}, fmt.Errorf("tensor %s: blob %s: %w", l.Name, l.Digest, err)
	}
	if len(h.Tensors) != 1 || h.Tensors[0].Name != l.Name {
		return blob{}, fmt.Errorf("tensor %s: blob %s holds other tensors: %w", l.Name, l.Digest, ErrImage)
	}
	return blob{layer: l, path: store.BlobPath(l.Digest), header: h}, nil
}

// openBlobs reads the headers of all tensor blobs and checks them against the architecture's table.
func (f files) openBlobs(config arch.Model) ([]blob, error) {
	var blobs []blob
	var have []arch.TensorInfo
	for _, l := range f.tensorLayers() {
		b, err := openBlob(f.store, l)
		if err != nil {
			return nil, err
		}
		blobs = append(blobs, b)
		t := b.header.Tensors[0]
		have = append(have, arch.TensorInfo{Name: t.Name, DType: string(t.DType), Shape: t.Shape})
	}
	if _, err := config.Table().Check(have); err != nil {
		return nil, err
	}
	return blobs, nil
}

// load makes the arrays of a blob, kept. It runs on the engine's thread.
func (b blob) load(t *mlx.Thread, float32s bool) (map[string]*mlx.Array, error) {
	if _, err := os.Stat(b.path); err != nil {
		return nil, fmt.Errorf("tensor %s: %w", b.layer.Name, err)
	}
	region := mlx.OpenRegion(t, b.path, b.header.DataOffset, b.header.Size-b.header.DataOffset)
	defer region.Close()
	arrays := map[string]*mlx.Array{}
	for _, tensor := range b.header.Tensors {
		d, ok := dtypes[tensor.DType]
		if !ok {
			return nil, fmt.Errorf("tensor %s: type %s cannot be run: %w", tensor.Name, tensor.DType, ErrImage)
		}
		shape := make([]int, len(tensor.Shape))
		for i, n := range tensor.Shape {
			shape[i] = int(n)
		}
		a := region.Array(tensor.Begin, d, shape...)
		if float32s && d.Float() && d != mlx.Float32 {
			a = mlx.AsType(a, mlx.Float32)
			mlx.Eval(a) // the mapping goes with the narrow array
		}
		arrays[tensor.Name] = mlx.Keep(a)
	}
	return arrays, nil
}
