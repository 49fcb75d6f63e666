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
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
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

// precision describes how a checkpoint is loaded.
type precision struct {
	format quantize.Type // of the weights, by the architecture's precision rules; 0 means as stored
	dtype  mlx.DType     // of all other elements, and of activations; 0 means as stored
	unpack bool          // use plain weights with the values that the format represents
}

// Weights reads a checkpoint in any layout: its configuration, and its tensors in float32, which are freed when the
// test ends.
func Weights(t *testing.T, name string) (arch.Model, *nn.Weights) {
	t.Helper()
	config, tensors := read(t, name)
	weights, _ := hold(t, config, tensors, precision{dtype: mlx.Float32})
	return config, weights
}

// load builds the model and returns the number of quantized tensors.
func (c *Checkpoint) load(t *testing.T, p precision) (m models.Model, packed int) {
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
	var have []arch.TensorInfo
	for _, s := range ckpt.Tensors() {
		switch h := (arch.TensorInfo{Name: s.Name, DType: string(s.DType), Shape: s.Shape}); {
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
func assemble(ckpt *safetensors.Checkpoint, m arch.Matched) (tensor, error) {
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

// tensor converts the weight to arrays.
func (x tensor) tensor(e *mlx.Thread, rules arch.Rules, p precision) (*nn.Tensor, error) {
	float := dtypes[x.dtype].Float()
	if x.add != 0 { // only exact in float32
		a := array(e, x.data, x.dtype, x.shape, mlx.Float32)
		return &nn.Tensor{Array: mlx.Add(a, mlx.Full(e, x.add, mlx.Float32))}, nil
	}
	format, _ := rules.Precision(x.name, x.shape, p.format)
	if format == 0 || format.IsCast() || !float {
		to := p.dtype
		if to == 0 && float && format != 0 {
			to = dtypes[safetensors.DType(format.DType())]
		}
		return &nn.Tensor{Array: array(e, x.data, x.dtype, x.shape, to)}, nil
	}
	return x.quantized(e, format, p)
}

// quantized quantizes the weight.
func (x tensor) quantized(e *mlx.Thread, format quantize.Type, p precision) (*nn.Tensor, error) {
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
		return array(e, data, safetensors.DType(part.DType), part.Shape, p.dtype)
	}
	codes := toArray(blocks.Packed, parts.Packed)
	packed := &nn.Packed{
		Scales: toArray(blocks.Scales, parts.Scales), Biases: toArray(blocks.Biases, parts.Biases),
		Mode: modes[format.Mode()], Bits: format.Bits(), Group: format.Group(),
	}
	if p.unpack {
		a := mlx.Dequantize(codes, packed.Scales, packed.Biases, packed.Group, packed.Bits, packed.Mode, nil, p.dtype)
		return &nn.Tensor{Array: a}, nil
	}
	return &nn.Tensor{Array: codes, Packed: packed}, nil
}

var modes = map[string]mlx.QuantMode{"affine": mlx.Affine, "mxfp4": mlx.MXFP4, "mxfp8": mlx.MXFP8, "nvfp4": mlx.NVFP4}

// hold keeps the tensors' arrays until the test ends and returns the number of quantized tensors.
func hold(t *testing.T, config arch.Model, tensors []tensor, p precision) (weights *nn.Weights, packed int) {
	t.Helper()
	all := map[string]*nn.Tensor{}
	count := map[mlx.DType]int{}
	var err error
	mlxtest.Do(t, func(e *mlx.Thread) {
		for _, x := range tensors {
			var made *nn.Tensor
			if made, err = x.tensor(e, config.Rules(), p); err != nil {
				err = fmt.Errorf("tensor %s: %w", x.name, err)
				return
			}
			all[x.name] = made
			mlx.Keep(made.Array)
			if made.Packed != nil {
				mlx.Keep(made.Packed.Scales, made.Packed.Biases)
				packed++
			} else {
				count[made.Array.DType()]++
			}
		}
	})
	dtype := p.dtype
	if len(count) == 0 {
		dtype = cmp.Or(dtype, mlx.BFloat16) // as when an image is loaded
	}
	for d, n := range count {
		if p.dtype == 0 && n > count[dtype] {
			dtype = d // the type of most plain weights
		}
	}
	weights = nn.NewWeights(dtype, all)
	t.Cleanup(func() {
		// The test's context is already cancelled.
		_ = mlxtest.Open(t).Do(context.Background(), func() error { weights.Free(); return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	return weights, packed
}
