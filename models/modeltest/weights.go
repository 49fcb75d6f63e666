package modeltest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/shard"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// tensor is a tensor of an architecture's tensor table, assembled from the checkpoint.
type tensor struct {
	name  string
	dtype safetensors.DType
	shape []int64
	data  []byte
	add   float64 // to every element, in float32
}

// prec describes how a checkpoint is loaded.
type prec struct {
	format quantize.Type // of the weights, by the architecture's precision rules; 0 means as stored
	dtype  mlx.DType     // of all other elements, and of activations; 0 means as stored
	unpack bool          // use plain weights with the values that the format represents
}

// Weights reads a checkpoint in any layout: its configuration, and its tensors in float32, which are freed when the
// test ends.
func Weights(t *testing.T, name string) (arch.Model, *nn.Weights) {
	t.Helper()
	config, tensors := read(t, name)
	weights, _ := hold(t, config, tensors, prec{dtype: mlx.Float32})
	return config, weights
}

// load builds the model and returns the number of quantized tensors.
func (c *Checkpoint) load(t *testing.T, p prec) (m models.Model, packed int) {
	t.Helper()
	weights, packed := hold(t, c.config, c.tensors, p)
	var err error
	mlxtest.Do(t, func(e *mlx.Thread) { m, err = models.Build(e, c.config, weights) })
	if err != nil {
		t.Fatal(err)
	}
	return m, packed
}

// read returns the tensors of a checkpoint in the order of its tensor table.
func read(t *testing.T, name string) (arch.Model, []tensor) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Dir(name), "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := arch.Detect(text)
	if err != nil {
		t.Fatal(err)
	}
	ckpt, err := safetensors.OpenCheckpoint(Dir(name))
	if err != nil {
		t.Fatal(err)
	}
	defer ckpt.Close()
	var have []table.TensorInfo
	for _, s := range ckpt.Tensors() {
		switch h := (table.TensorInfo{Name: s.Name, DType: string(s.DType), Shape: s.Shape}); {
		case isBlocks(s.Name):
			h.DType, h.Shape = string(safetensors.BF16), blocksShape(s.Shape)
			have = append(have, h)
		case !isScales(ckpt, s.Name):
			have = append(have, h)
		}
	}
	match, err := config.Table().Check(have)
	if err != nil {
		t.Fatal(err)
	}
	var all []tensor
	for _, m := range match.Tensors {
		x, err := assemble(ckpt, m)
		if err != nil {
			t.Fatalf("tensor %s: %v", m.Spec.Name, err)
		}
		all = append(all, x)
	}
	return config, all
}

// assemble builds a tensor from its sources.
func assemble(ckpt *safetensors.Checkpoint, m table.Matched) (tensor, error) {
	x := tensor{name: m.Spec.Name, shape: m.Spec.Shape, add: m.Add}
	sources := make([][]byte, len(m.Sources))
	for i, name := range m.Sources {
		s, _ := ckpt.Lookup(name)
		var err error
		if sources[i], err = io.ReadAll(s.Reader()); err != nil {
			return x, err
		}
		x.dtype = s.DType
		if isBlocks(name) {
			if sources[i], err = decodeBlocks(ckpt, name, sources[i]); err != nil {
				return x, err
			}
			x.dtype = safetensors.BF16
			continue
		}
		if m.Transposed {
			n := len(s.Shape)
			sources[i] = transposed(sources[i], int(s.Shape[n-2]), int(s.Shape[n-1]), s.DType.Bits()/8)
		}
	}
	width := int64(x.dtype.Bits() / 8)
	for p := range m.Pieces() {
		x.data = append(x.data, sources[p.Source][p.Begin*width:][:p.Count*width]...)
	}
	return x, nil
}

// transposed returns the transposes of matrices [rows, columns] of elements of width bytes.
func transposed(data []byte, rows, columns, width int) []byte {
	out := make([]byte, 0, len(data))
	for matrix := range slices.Chunk(data, rows*columns*width) {
		for c := range columns {
			for r := range rows {
				out = append(out, matrix[(r*columns+c)*width:][:width]...)
			}
		}
	}
	return out
}

var dtypes = map[safetensors.DType]mlx.DType{
	"BF16": mlx.BFloat16, "F16": mlx.Float16, "F32": mlx.Float32, "F64": mlx.Float64, "I32": mlx.Int32, "I64": mlx.Int64,
	"U32": mlx.Uint32, "U8": mlx.Uint8,
}

// array converts elements to an array. Floating-point elements become dtype unless that is 0.
func array(e *mlx.Thread, data []byte, from safetensors.DType, shape []int64, dtype mlx.DType) *mlx.Array {
	dims := make([]int, len(shape))
	for i, d := range shape {
		dims[i] = int(d)
	}
	a := mlx.FromBytes(e, data, dtypes[from], dims...)
	if dtype != 0 && a.DType().Float() {
		a = mlx.AsType(a, dtype)
	}
	return a
}

// tensor converts the weight, or a rank's part of it, to arrays.
func (x tensor) tensor(e *mlx.Thread, rules precision.Rules, p prec, part *shard.Part) (*nn.Tensor, error) {
	float := dtypes[x.dtype].Float()
	format, _ := rules.Precision(x.name, x.shape, p.format)
	if x.add == 0 && format != 0 && !format.IsCast() && float {
		return x.quantized(e, format, p, part)
	}
	var err error
	if x.data, x.shape, err = cut(x.data, x.shape, int64(x.dtype.Bits()/8), part); err != nil {
		return nil, err
	}
	if x.add != 0 { // only exact in float32
		a := array(e, x.data, x.dtype, x.shape, mlx.Float32)
		return &nn.Tensor{Array: mlx.Add(a, mlx.Full(e, x.add, mlx.Float32)), Part: part}, nil
	}
	to := p.dtype
	if to == 0 && float && format != 0 {
		to = dtypes[safetensors.DType(format.DType())]
	}
	return &nn.Tensor{Array: array(e, x.data, x.dtype, x.shape, to), Part: part}, nil
}

// cut returns a rank's part of elements; nil is all of them.
func cut(data []byte, shape []int64, size int64, part *shard.Part) ([]byte, []int64, error) {
	if part == nil {
		return data, shape, nil
	}
	own, err := part.Shape(shape)
	if err != nil {
		return nil, nil, err
	}
	ranges, err := part.Bytes(shape, size)
	var out []byte
	for _, r := range ranges {
		out = append(out, data[r.Begin:r.End]...)
	}
	return out, own, err
}

// quantized quantizes the weight, or a rank's part of it.
func (x tensor) quantized(e *mlx.Thread, format quantize.Type, p prec, rank *shard.Part) (*nn.Tensor, error) {
	if rank != nil && rank.Axis == len(x.shape)-1 {
		covered := rank.Cover(int64(format.Group()))
		rank = &covered
	}
	from := quantize.DType(x.dtype)
	parts, err := format.Parts(from, x.shape)
	if err != nil {
		return nil, err
	}
	blocks := quantize.Blocks{
		Packed: make([]byte, parts.Packed.Size()), Scales: make([]byte, parts.Scales.Size()),
		Biases: make([]byte, parts.Biases.Size()),
	}
	if err := format.Encode(blocks, x.data, from); err != nil {
		return nil, err
	}
	toArray := func(data []byte, part quantize.Part) *mlx.Array {
		if part.DType == "" {
			return nil
		}
		dtype := safetensors.DType(part.DType)
		own, shape, failed := cut(data, part.Shape, int64(dtype.Bits()/8), rank)
		if failed != nil {
			err = failed
			return nil
		}
		return array(e, own, dtype, shape, p.dtype)
	}
	codes := toArray(blocks.Packed, parts.Packed)
	packed := &nn.Packed{
		Scales: toArray(blocks.Scales, parts.Scales), Biases: toArray(blocks.Biases, parts.Biases),
		Mode: modes[format.Mode()], Bits: format.Bits(), Group: format.Group(),
	}
	if err != nil {
		return nil, err
	}
	if p.unpack {
		a := mlx.Dequantize(codes, packed.Scales, packed.Biases, packed.Group, packed.Bits, packed.Mode, nil, p.dtype)
		return &nn.Tensor{Array: a, Part: rank}, nil
	}
	return &nn.Tensor{Array: codes, Packed: packed, Part: rank}, nil
}

var modes = map[string]mlx.QuantMode{"affine": mlx.Affine, "mxfp4": mlx.MXFP4, "mxfp8": mlx.MXFP8, "nvfp4": mlx.NVFP4}

// hold keeps the tensors' arrays until the test ends and returns the number of quantized tensors.
func hold(t *testing.T, config arch.Model, tensors []tensor, p prec) (weights *nn.Weights, packed int) {
	t.Helper()
	var held held
	var err error
	mlxtest.Do(t, func(e *mlx.Thread) { held, err = holdParts(e, config, tensors, p, nil) })
	t.Cleanup(func() {
		// The test's context is already cancelled.
		_ = mlxtest.Open(t).Do(context.Background(), func() error { held.weights.Free(); return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	return held.weights, held.packed
}

type held struct {
	weights *nn.Weights
	packed  int // number of quantized tensors
}

// holdParts keeps the arrays of tensors, of which a rank has parts. It returns what it has kept after an error, too.
func holdParts(e *mlx.Thread, config arch.Model, tensors []tensor, p prec, parts map[string]shard.Part,
) (h held, err error) {
	all := map[string]*nn.Tensor{}
	count := map[mlx.DType]int{}
	for _, x := range tensors {
		var part *shard.Part
		own, divided := parts[x.name]
		if divided && !own.Absent {
			part = &own
		}
		var made *nn.Tensor
		if made, err = x.tensor(e, config.Rules(), p, part); err != nil {
			err = fmt.Errorf("tensor %s: %w", x.name, err)
			break
		}
		if !own.Absent {
			all[x.name] = made
			mlx.Keep(made.Array)
		}
		if made.Packed != nil {
			if h.packed++; !own.Absent {
				mlx.Keep(made.Packed.Scales, made.Packed.Biases)
			}
		} else {
			count[made.Array.DType()]++
		}
	}
	dtype := p.dtype
	if len(count) == 0 {
		dtype = cmp.Or(dtype, mlx.BFloat16) // as when an image is loaded
	}
	for d, n := range count {
		if p.dtype == 0 && n > count[dtype] {
			dtype = d // the type of most plain weights
		}
	}
	h.weights = nn.NewWeights(dtype, all)
	return h, err
}
