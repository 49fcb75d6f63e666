package load

import (
	"context"
	"fmt"
	"os"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/shard"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/safetensors"
)

var dtypes = map[safetensors.DType]mlx.DType{
	"BOOL": mlx.Bool, "U8": mlx.Uint8, "U16": mlx.Uint16, "U32": mlx.Uint32, "U64": mlx.Uint64, "I8": mlx.Int8,
	"I16": mlx.Int16, "I32": mlx.Int32, "I64": mlx.Int64, "F16": mlx.Float16, "BF16": mlx.BFloat16, "F32": mlx.Float32,
	"F64": mlx.Float64,
}

// DType returns the engine's type of the elements of a blob, if it has it.
func DType(d safetensors.DType) (mlx.DType, bool) {
	t, ok := dtypes[d]
	return t, ok
}

// loadWeights loads a model's tensors, or a rank's parts of them, on the engine's thread. If it fails, it frees them.
func loadWeights(
	ctx context.Context, t *mlx.Thread, of arch.Model, blobs []tensorBlob, parts map[string]shard.Part,
	o runtime.Options,
) (*nn.Weights, error) {
	tensors := map[string]*nn.Tensor{}
	done := false
	defer func() {
		if !done { // failed or panicked
			nn.NewWeights(0, tensors).Free()
		}
	}()
	types := map[mlx.DType]int{}
	for i, b := range blobs {
		b.countType(types)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var part *shard.Part
		if own, divided := parts[b.name()]; divided {
			if own.Absent {
				continue
			}
			part = &own
		}
		tensor, err := b.load(t, part, o.Float32)
		if err != nil {
			return nil, err
		}
		tensors[b.name()] = tensor
		if o.Loaded != nil {
			o.Loaded(float64(i+1) / float64(len(blobs)))
		}
	}
	done = true
	dtype := mlx.Float32
	if !o.Float32 {
		dtype = mostUsed(types, arch.Wide(of))
	}
	return nn.NewWeights(dtype, tensors), nil
}

// countType counts a tensor's type for mostUsed: quantized ones count as their scales if these are floating-point
// numbers. Ranks count the tensors of all, so that they agree.
func (b *tensorBlob) countType(count map[mlx.DType]int) {
	if b.packed == 0 {
		count[dtypes[b.header.Arrays[""].DType]]++
	} else if _, affine := b.header.Arrays[blob.BiasSuffix]; affine {
		count[dtypes[b.header.Arrays[blob.ScaleSuffix].DType]]++
	}
}

// NewWeights returns the weights of a model that nothing divides, with the type of activations that it computes in.
func NewWeights(tensors map[string]*nn.Tensor, of arch.Model) *nn.Weights {
	types := map[mlx.DType]int{}
	for _, t := range tensors {
		if t.Packed == nil {
			types[t.Array.DType()]++
		} else if t.Packed.Biases != nil {
			types[t.Packed.Scales.DType()]++
		}
	}
	return nn.NewWeights(mostUsed(types, arch.Wide(of)), tensors)
}

// mostUsed returns the type of activations: the type of most tensors, preferring bfloat16, then float16. float16 is too
// narrow for wide models, which compute in bfloat16.
func mostUsed(count map[mlx.DType]int, wide bool) mlx.DType {
	best := mlx.BFloat16
	for _, d := range []mlx.DType{mlx.Float16, mlx.Float32} {
		if count[d] > count[best] {
			best = d
		}
	}
	if best == mlx.Float16 && wide {
		return mlx.BFloat16
	}
	return best
}

// load makes the kept arrays of a blob, or of a rank's part of it. It runs on the engine's thread.
func (b *tensorBlob) load(t *mlx.Thread, own *shard.Part, float32s bool) (*nn.Tensor, error) {
	if own != nil {
		whole := covered(*own, b.header, b.packed)
		own = &whole
	}
	var region *mlx.Region // nil: a rank opens those of its parts
	if own == nil {
		file := b.header.Header
		region = mlx.OpenRegion(t, b.path, file.DataOffset, file.Size-file.DataOffset)
		defer region.Close()
	}
	arrays := map[string]*mlx.Array{}
	for suffix, part := range b.header.Arrays {
		d, ok := dtypes[part.DType]
		if !ok {
			return nil, fmt.Errorf("tensor %s: type %s is not supported: %w", part.Name, part.DType, runtime.ErrImage)
		}
		shape := make([]int, len(part.Shape))
		for i, n := range part.Shape {
			shape[i] = int(n)
		}
		var a *mlx.Array
		var err error
		if own != nil {
			a, err = b.part(t, *own, part, d)
		} else {
			a, err = b.array(t, region, part, d, shape)
		}
		if err != nil {
			return nil, err
		}
		if float32s && d.Float() && d != mlx.Float32 {
			a = mlx.AsType(a, mlx.Float32)
			mlx.Eval(a) // unmaps the original
		}
		arrays[suffix] = a
	}
	tensor := TensorOf(arrays, b.packed)
	tensor.Part = own
	if b.packed != 0 {
		tensor.Packed.Global = b.header.Global
	}
	return tensor, nil
}

// TensorOf makes a tensor of the arrays of a blob, by their suffixes, and keeps them. The type is 0 if they are not
// quantized.
func TensorOf(arrays map[string]*mlx.Array, of quantize.Type) *nn.Tensor {
	for _, a := range arrays {
		mlx.Keep(a)
	}
	tensor := &nn.Tensor{Array: arrays[""]}
	if of != 0 {
		tensor.Packed = &nn.Packed{
			Scales: arrays[blob.ScaleSuffix], Biases: arrays[blob.BiasSuffix],
			Mode: modes[of.Mode()], Bits: of.Bits(), Group: of.Group(),
		}
	}
	return tensor
}

// array makes the array of a part. It maps the file, unless the elements are not aligned to their size:
// mlx_save_safetensors, which wrote Ollama's blobs, does not pad the header. Those are copied.
func (b *tensorBlob) array(t *mlx.Thread, region *mlx.Region, part safetensors.Tensor, d mlx.DType,
	shape []int) (*mlx.Array,
	error) {
	size := int64(d.Size())
	if part.Begin%size == 0 && (b.header.Header.DataOffset+part.Begin)%size == 0 {
		return region.Array(part.Begin, d, shape...), nil
	}
	data, err := b.read(part, shard.Range{End: part.End - part.Begin})
	if err != nil {
		return nil, err
	}
	return mlx.FromBytes(t, data, d, shape...), nil
}

// part makes the array of what a rank has of a part. It maps rows that lie together, and copies columns.
func (b *tensorBlob) part(t *mlx.Thread, own shard.Part, part safetensors.Tensor, d mlx.DType) (*mlx.Array, error) {
	size := int64(d.Size())
	whole, err := own.Shape(part.Shape)
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w", part.Name, err)
	}
	ranges, err := own.Bytes(part.Shape, size)
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w", part.Name, err)
	}
	shape := make([]int, len(whole))
	for i, n := range whole {
		shape[i] = int(n)
	}
	begin := b.header.Header.DataOffset + part.Begin
	if len(ranges) == 1 && (begin+ranges[0].Begin)%size == 0 {
		region := mlx.OpenRegion(t, b.path, begin+ranges[0].Begin, ranges[0].Len())
		defer region.Close()
		return region.Array(0, d, shape...), nil
	}
	data, err := b.read(part, ranges...)
	if err != nil {
		return nil, err
	}
	return mlx.FromBytes(t, data, d, shape...), nil
}

// read returns ranges of a part's bytes, one after the other.
func (b *tensorBlob) read(part safetensors.Tensor, ranges ...shard.Range) ([]byte, error) {
	f, err := os.Open(b.path)
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w", part.Name, err)
	}
	defer f.Close()
	var size int64
	for _, r := range ranges {
		size += r.Len()
	}
	data := make([]byte, size)
	at := data
	for _, r := range ranges {
		if _, err := f.ReadAt(at[:r.Len()], b.header.Header.DataOffset+part.Begin+r.Begin); err != nil {
			return nil, fmt.Errorf("tensor %s: blob %s: %w", part.Name, b.layer.Digest, err)
		}
		at = at[r.Len():]
	}
	return data, nil
}

var modes = map[string]mlx.QuantMode{"affine": mlx.Affine, "mxfp4": mlx.MXFP4, "mxfp8": mlx.MXFP8, "nvfp4": mlx.NVFP4}

// widest returns the number of rows of the widest weight matrix, except for those of the vocabulary.
func widest(f config.Facts, blobs []tensorBlob) int64 {
	widest := f.Hidden
	for _, b := range blobs {
		if shape := b.header.Arrays[""].Shape; len(shape) == 2 && shape[0] != f.Vocab {
			widest = max(widest, shape[0])
		}
	}
	return widest
}
