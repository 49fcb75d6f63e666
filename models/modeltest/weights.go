package modeltest

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/safetensors"
)

// tensor is one of a table's, made from what the checkpoint has.
type tensor struct {
	name  string
	dtype safetensors.DType
	shape []int64
	data  []byte
	add   float64 // to every element, in float32
}

// Weights reads a checkpoint in whatever layout it is: its configuration, and its tensors in float32, which are freed when
// the test ends.
func Weights(t *testing.T, name string) (arch.Model, *nn.Weights) {
	t.Helper()
	config, tensors := read(t, name)
	return config, hold(t, tensors)
}

// read gives the tensors of a checkpoint in the order of its table.
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
		have = append(have, arch.TensorInfo{Name: s.Name, DType: string(s.DType), Shape: s.Shape})
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

// assemble puts a tensor together from its sources.
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
	}
	width := int64(x.dtype.Bits() / 8)
	for p := range m.Pieces() {
		x.data = append(x.data, sources[p.Source][p.Begin*width:][:p.Count*width]...)
	}
	return x, nil
}

var dtypes = map[safetensors.DType]mlx.DType{
	"BF16": mlx.BFloat16, "F16": mlx.Float16, "F32": mlx.Float32, "F64": mlx.Float64, "I32": mlx.Int32, "I64": mlx.Int64,
}

// array is the tensor as the engine takes it: floating point as float32, the rest as it is.
func (x tensor) array(e *mlx.Thread) *mlx.Array {
	shape := make([]int, len(x.shape))
	for i, d := range x.shape {
		shape[i] = int(d)
	}
	a := mlx.FromBytes(e, x.data, dtypes[x.dtype], shape...)
	if a.DType().Float() {
		a = mlx.AsType(a, mlx.Float32)
	}
	if x.add != 0 {
		a = mlx.Add(a, mlx.Full(e, x.add, mlx.Float32))
	}
	return a
}

// hold gives the tensors to the engine until the test ends.
func hold(t *testing.T, tensors []tensor) *nn.Weights {
	t.Helper()
	all := map[string]*nn.Tensor{}
	mlxtest.Do(t, func(e *mlx.Thread) {
		for _, x := range tensors {
			all[x.name] = &nn.Tensor{Array: mlx.Keep(x.array(e))}
		}
	})
	weights := nn.NewWeights(mlx.Float32, all)
	t.Cleanup(func() {
		// The test's own context has ended by now.
		_ = mlxtest.Open(t).Do(context.Background(), func() error { weights.Free(); return nil })
	})
	return weights
}
