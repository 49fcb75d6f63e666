package mlx_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// Layers give the same bits as LinearLayers, also after the arrays that they were made from are freed.
func TestLayers(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		weight := mlx.RandomNormal(mlx.RandomKey(e, 1), mlx.BFloat16, 96, 128)
		bias := mlx.RandomNormal(mlx.RandomKey(e, 2), mlx.BFloat16, 96)
		packed := mlx.Quantize(weight, 32, 4, mlx.Affine, nil)
		for _, test := range []struct {
			name                          string
			parts                         []*mlx.Array
			formats, groups, bits, biased []int
			heads                         []int
			x                             mlx.DType
			shape                         []int
			joined                        bool
		}{
			{"packed", packed, []int{0}, []int{32}, []int{4}, []int{0}, []int{0}, mlx.BFloat16, []int{3, 128}, false},
			{"float32", packed, []int{0}, []int{32}, []int{4}, []int{0}, []int{0}, mlx.Float32, []int{1, 128}, false},
			{"several", []*mlx.Array{packed[0], packed[1], packed[2], weight, bias}, []int{0, -1}, []int{32, 0}, []int{4, 0},
				[]int{0, 1}, []int{4, 0}, mlx.BFloat16, []int{20, 128}, false},
			{"joined, lazy weights", []*mlx.Array{mlx.Add(weight, weight), bias}, []int{-1}, []int{0}, []int{0}, []int{1},
				[]int{2}, mlx.Float16, []int{2, 4, 32}, true},
			{"weights that are not row-major", []*mlx.Array{mlx.Transpose(mlx.Contiguous(mlx.Transpose(weight)))}, []int{-1},
				[]int{0}, []int{0}, []int{0}, []int{0}, mlx.BFloat16, []int{2, 128}, false},
		} {
			x := mlx.RandomNormal(mlx.RandomKey(e, 3), test.x, test.shape...)
			layers := mlx.NewLayers(test.parts, test.joined, test.formats, test.groups, test.bits, test.biased, test.heads)
			want := mlx.LinearLayers(x, test.parts, test.joined, test.formats, test.groups, test.bits, test.biased,
				test.heads...)
			got := layers.Apply(x)
			layers.Free()
			layers.Free()
			if len(got) != len(want) {
				t.Errorf("%s: %d results, want %d", test.name, len(got), len(want))
				continue
			}
			for i := range got {
				if !slices.Equal(got[i].Shape(), want[i].Shape()) || got[i].DType() != want[i].DType() {
					t.Errorf("%s: result %d is %v, want %v", test.name, i, got[i], want[i])
				} else if !slices.Equal(got[i].ToBytes(), want[i].ToBytes()) {
					t.Errorf("%s: result %d differs", test.name, i)
				}
			}
		}
	})
}

// Layers whose biases are all the same multiple of their scales read only the scales: one row has the same bits, more
// rows are as exact.
func TestLayersSymmetric(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		packed := mlx.Quantize(mlx.RandomNormal(mlx.RandomKey(e, 1), mlx.Float16, 96, 128), 32, 4, mlx.Affine, nil)
		packed[2] = mlx.MultiplyScalar(packed[1], -8)
		one := []int{0}
		layers := mlx.NewLayers(packed, false, one, []int{32}, []int{4}, one, one)
		defer layers.Free()
		weight := mlx.Dequantize(packed[0], packed[1], packed[2], 32, 4, mlx.Affine, nil, mlx.Float32)
		for _, rows := range []int{1, 5, 20} {
			x := mlx.RandomNormal(mlx.RandomKey(e, 2), mlx.Float16, rows, 128)
			got := layers.Apply(x)[0]
			if rows == 1 {
				want := mlx.LinearLayers(x, packed, false, one, []int{32}, []int{4}, one, 0)[0]
				if !slices.Equal(got.ToBytes(), want.ToBytes()) {
					t.Error("one row differs from the product with biases")
				}
			}
			want := mlx.MatMul(mlx.AsType(x, mlx.Float32), mlx.Transpose(weight))
			off := mlx.Max(mlx.Abs(mlx.Subtract(mlx.AsType(got, mlx.Float32), want)), false).Float32s()[0]
			if largest := mlx.Max(mlx.Abs(want), false).Float32s()[0]; !(off <= largest/1024) {
				t.Errorf("%d rows: a result is off by %v, the largest is %v", rows, off, largest)
			}
		}
	})
}

// A fused prologue gives the same result as the separate operation. Many rows are not fused.
func TestLayersAfter(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		weight := mlx.RandomNormal(mlx.RandomKey(e, 1), mlx.BFloat16, 96, 128)
		packed := mlx.Quantize(weight, 64, 4, mlx.Affine, nil)
		layers := mlx.NewLayers(append(packed, weight), false, []int{0, -1}, []int{64, 0}, []int{4, 0}, []int{0, 0},
			[]int{2, 0})
		defer layers.Free()
		norm := mlx.RandomNormal(mlx.RandomKey(e, 2), mlx.BFloat16, 128)
		equal := func(what string, got, want []*mlx.Array) {
			t.Helper()
			for i := range want {
				if !slices.Equal(got[i].ToBytes(), want[i].ToBytes()) {
					t.Errorf("%s: result %d differs", what, i)
				}
			}
		}
		for _, rows := range []int{1, 5, 80} {
			x := mlx.RandomNormal(mlx.RandomKey(e, 3), mlx.BFloat16, rows, 128)
			y := mlx.RandomNormal(mlx.RandomKey(e, 4), mlx.BFloat16, rows, 128)
			for _, plusOne := range []bool{false, true} {
				both := mlx.AddRMSNorm(x, y, norm, 1e-5, plusOne)
				sum, got := layers.ApplyNormed(x, y, norm, 1e-5, plusOne)
				equal("norm", append(got, sum), append(layers.Apply(both[1]), both[0]))
			}
			kept, normed, got := layers.ApplyNormedKept(x, y, norm, 1e-5, true)
			both := mlx.AddRMSNorm(x, y, norm, 1e-5, true)
			equal("norm that is kept", append(got, kept, normed), append(layers.Apply(both[1]), both...))
			_, normed, got = layers.ApplyNormedKept(x, nil, norm, 1e-5, false)
			one := mlx.RMSNorm(x, norm, 1e-5)
			equal("norm alone that is kept", append(got, normed), append(layers.Apply(one), one))
			_, got = layers.ApplyNormed(x, nil, norm, 1e-5, false)
			equal("norm alone", got, layers.Apply(mlx.RMSNorm(x, norm, 1e-5)))
			_, got = layers.ApplyNormed(x, nil, nil, 1e-5, false)
			equal("norm without weights", got, layers.Apply(mlx.RMSNorm(x, nil, 1e-5)))
			for act, gated := range map[mlx.Activation]*mlx.Array{
				mlx.SigmoidActivation: mlx.SigmoidGate(x, y), mlx.SiLUActivation: mlx.SwiGLU(x, y),
				mlx.GELUActivation: mlx.GEGLU(x, y), mlx.GELUTanhActivation: mlx.GEGLUTanh(x, y),
			} {
				equal("gate", layers.ApplyGated(act, x, y), layers.Apply(gated))
			}
			wide := func(apply func() []*mlx.Array) (rounded []*mlx.Array) {
				layers.Wide = true
				defer func() { layers.Wide = false }()
				for _, y := range apply() {
					if y.DType() != mlx.Float32 {
						t.Errorf("a wide result is %v", y)
					}
					rounded = append(rounded, mlx.AsType(y, mlx.BFloat16))
				}
				return rounded
			}
			equal("wide", wide(func() []*mlx.Array { return layers.Apply(x) }), layers.Apply(x))
			equal("wide, gate", wide(func() []*mlx.Array { return layers.ApplyGated(mlx.SiLUActivation, x, y) }),
				layers.ApplyGated(mlx.SiLUActivation, x, y))
			equal("wide, norm", wide(func() []*mlx.Array {
				_, outs := layers.ApplyNormed(x, y, norm, 1e-5, false)
				return outs
			}), second(layers.ApplyNormed(x, y, norm, 1e-5, false)))
		}
	})
}

func second[A, B any](_ A, b B) B { return b }

func TestLayersRefuse(t *testing.T) {
	for _, test := range []struct {
		want string
		call func(e *mlx.Thread)
	}{
		{"not enough for the formats", func(e *mlx.Thread) {
			w := mlx.Zeros(e, mlx.Float32, 4, 8)
			mlx.NewLayers([]*mlx.Array{w}, false, []int{-1, -1}, []int{0, 0}, []int{0, 0}, []int{0, 0}, []int{0, 0})
		}},
		{"do not fit", func(e *mlx.Thread) {
			w := mlx.Zeros(e, mlx.Float32, 4, 8)
			l := mlx.NewLayers([]*mlx.Array{w}, false, []int{-1}, []int{0}, []int{0}, []int{0}, []int{0})
			defer l.Free()
			l.Apply(mlx.Zeros(e, mlx.Float32, 2, 9))
		}},
		{"freed", func(e *mlx.Thread) {
			w := mlx.Zeros(e, mlx.Float32, 4, 8)
			l := mlx.NewLayers([]*mlx.Array{w}, false, []int{-1}, []int{0}, []int{0}, []int{0}, []int{0})
			l.Free()
			l.Apply(mlx.Zeros(e, mlx.Float32, 2, 8))
		}},
	} {
		if err := mlxtest.Try(t, test.call); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}
