package nn_test

import (
	"errors"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/nn"
)

// A global factor of a weight multiplies the layer's output before the bias, for all ways to apply the layer. Only
// linear layers can have one.
func TestFactor(t *testing.T) {
	const out, in, factor = 8, 64, 0.3
	mlxtest.Do(t, func(e *mlx.Thread) {
		weight, plain := stored(e, mlx.RandomNormal(mlx.RandomKey(e, 1), mlx.Float32, out, in),
			nn.Packed{Mode: mlx.NVFP4, Bits: 4, Group: 16, Global: factor})
		bias := mlx.RandomNormal(mlx.RandomKey(e, 2), mlx.Float32, out)
		one := mlx.RandomNormal(mlx.RandomKey(e, 4), mlx.Float32, in)
		w := nn.NewWeights(mlx.Float32, map[string]*nn.Tensor{"a.weight": weight, "a.bias": {Array: mlx.Keep(bias)},
			"n.weight": {Array: mlx.Keep(one)}})
		defer w.Free()
		bare, biased, norm := nn.NewLinear(w, "a", out, in, false), nn.NewLinear(w, "a", out, in, true),
			nn.NewRMSNorm(w, "n", in, 1e-5)
		if err := w.Err(); err != nil {
			t.Error(err)
			return
		}
		plain = mlx.Transpose(mlx.MultiplyScalar(plain, factor))
		x := mlx.RandomNormal(mlx.RandomKey(e, 3), mlx.Float32, 3, in)
		want := mlx.MatMul(x, plain)
		wantNearly(t, "alone", bare.Apply(x), want)
		both := nn.Linears(x, bare, biased)
		wantNearly(t, "beside another", both[0], want)
		wantNearly(t, "with a bias", both[1], mlx.Add(want, bias))
		wantNearly(t, "in heads", nn.Linears(x, biased.Split(2))[0], mlx.Reshape(mlx.Add(want, bias), 3, 2, out/2))
		_, normed := nn.NormedLinears(norm, x, nil, bare)
		wantNearly(t, "after a norm", normed[0], mlx.MatMul(norm.Apply(x), plain))
		wantNearly(t, "after a gate", bare.ApplyGated(mlx.SiLUActivation, x, x), mlx.MatMul(mlx.SwiGLU(x, x), plain))

		table := nn.NewWeights(mlx.Float32, map[string]*nn.Tensor{"a.weight": weight})
		nn.NewEmbedding(table, "a", out, in)
		if err := table.Err(); !errors.Is(err, nn.ErrWeights) {
			t.Errorf("an embedding with a factor: %v", err)
		}
	})
}

// Float32 scales do not widen a layer's output.
func TestWideScales(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		weight, plain := stored(e, mlx.RandomNormal(mlx.RandomKey(e, 1), mlx.Float32, 8, 64),
			nn.Packed{Mode: mlx.Affine, Bits: 4, Group: 32})
		w := nn.NewWeights(mlx.BFloat16, map[string]*nn.Tensor{"a.weight": weight})
		defer w.Free()
		layer := nn.NewLinear(w, "a", 8, 64, false)
		if err := w.Err(); err != nil {
			t.Error(err)
			return
		}
		x := mlx.AsType(mlx.RandomNormal(mlx.RandomKey(e, 3), mlx.Float32, 3, 64), mlx.BFloat16)
		got := layer.Apply(x)
		if got.DType() != mlx.BFloat16 {
			t.Errorf("%s comes out of bfloat16", got.DType())
		}
		want := mlx.MatMul(mlx.AsType(x, mlx.Float32), mlx.Transpose(plain))
		wantNearly(t, "rounded", mlx.AsType(got, mlx.Float32), mlx.AsType(mlx.AsType(want, mlx.BFloat16), mlx.Float32))
	})
}
