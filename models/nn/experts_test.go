package nn_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/nn"
)

// bankFormats are the formats that experts are stored in.
var bankFormats = []nn.Packed{
	{}, {Mode: mlx.Affine, Bits: 4, Group: 64}, {Mode: mlx.Affine, Bits: 8, Group: 32},
	{Mode: mlx.MXFP4, Bits: 4, Group: 32},
	{Mode: mlx.MXFP8, Bits: 8, Group: 32}, {Mode: mlx.NVFP4, Bits: 4, Group: 16},
}

// stored returns a tensor in a format, and its decoded values.
func stored(e *mlx.Thread, x *mlx.Array, f nn.Packed) (*nn.Tensor, *mlx.Array) {
	if f.Bits == 0 {
		return &nn.Tensor{Array: mlx.Keep(x)}, x
	}
	parts := mlx.Quantize(x, f.Group, f.Bits, f.Mode, nil)
	f.Scales = mlx.Keep(parts[1])
	if len(parts) > 2 {
		f.Biases = mlx.Keep(parts[2])
	}
	plain := mlx.Dequantize(parts[0], f.Scales, f.Biases, f.Group, f.Bits, f.Mode, nil, mlx.Float32)
	return &nn.Tensor{Array: mlx.Keep(parts[0]), Packed: &f}, plain
}

// Experts match a reference implementation row by row, in every format, for one row and for many.
func TestExperts(t *testing.T) {
	const experts, hidden, width, k = 5, 128, 64, 2
	for _, f := range bankFormats {
		for _, rows := range []int{1, 3, 40, 300} { // large counts are not fused
			t.Run(fmt.Sprintf("mode %d, %d bits, %d rows", f.Mode, f.Bits, rows), func(t *testing.T) {
				mlxtest.Do(t, func(e *mlx.Thread) {
					keys := mlx.RandomSplit(mlx.RandomKey(e, 5), 6)
					random := func(i int, shape ...int) *mlx.Array {
						return mlx.RandomNormal(mlx.Reshape(mlx.SliceAxis(keys, 0, mlx.At(i)), 2), mlx.Float32, shape...)
					}
					gateUp, plainGateUp := stored(e, mlx.MultiplyScalar(random(0, experts, 2*width, hidden), 0.1), f)
					down, plainDown := stored(e, mlx.MultiplyScalar(random(1, experts, hidden, width), 0.1), f)
					w := nn.NewWeights(mlx.Float32, map[string]*nn.Tensor{"x.gate_up_proj": gateUp, "x.down_proj": down})
					defer w.Free()
					activate := mlx.SwiGLU
					block := nn.NewExperts(w, "x", arch.Experts{Count: experts, PerToken: k, Intermediate: width}, hidden)
					if err := w.Err(); err != nil {
						t.Error(err)
						return
					}
					x, shared, gate := random(2, rows, hidden), random(3, rows, hidden), random(4, rows, 1)
					if rows == 3 {
						block.ThroughGELU()
						activate = mlx.GEGLUTanh
					}
					weights, chosen := nn.TopSoftmax(random(5, rows, experts), k, true)
					got := block.Apply(x, weights, chosen, nn.Shared{}).Float32s()
					ungated := block.Apply(x, weights, chosen, nn.Shared{X: shared}).Float32s()
					gated := block.Apply(x, weights, chosen, nn.Shared{X: shared, Gate: gate}).Float32s()
					sorted := block.ApplySorted(x, weights, chosen).Float32s()

					all := mlx.MatMul(mlx.ExpandDims(x, 0), mlx.SwapAxes(plainGateUp, 1, 2)) // [experts, rows, 2*width]
					each := mlx.MatMul(activate(all, nil), mlx.SwapAxes(plainDown, 1, 2)).Float32s()
					by, at := weights.Float32s(), mlx.ToSlice[uint32](chosen)
					add, open := shared.Float32s(), gate.Float32s()
					for i := range got {
						row := i / hidden
						want := 0.0
						for j := range k {
							want += float64(by[row*k+j]) * float64(each[(int(at[row*k+j])*rows+row)*hidden+i%hidden])
						}
						for _, c := range []struct {
							name string
							got  float32
							want float64
						}{
							{"chosen", got[i], want},
							{"sorted by expert", sorted[i], want},
							{"and shared", ungated[i], want + float64(add[i])},
							{"and gated", gated[i], want + float64(add[i])/(1+math.Exp(-float64(open[row])))},
						} {
							if !(math.Abs(float64(c.got)-c.want) < 1e-4) {
								t.Errorf("%s: element %d is %v, want %v", c.name, i, c.got, c.want)
								return
							}
						}
					}
				})
			})
		}
	}
}

// Missing experts and experts of wrong shape are errors of the weights, reported before any step.
func TestExpertsNeedTheirWeights(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		gateUp := mlx.Keep(mlx.Zeros(e, mlx.Float32, 2, 8, 4))
		w := nn.NewWeights(mlx.Float32, map[string]*nn.Tensor{"x.gate_up_proj": {Array: gateUp}})
		defer w.Free()
		nn.NewExperts(w, "x", arch.Experts{Count: 2, PerToken: 1, Intermediate: 4}, 4)
		if err := w.Err(); err == nil || err.Error() != "tensor x.down_proj is missing: "+nn.ErrWeights.Error() {
			t.Errorf("got %v", err)
		}
	})
}

func TestTopSoftmax(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		scores := mlx.FromSlice(e, []float32{0, 2, 1, 2, -3, 4, 0, 4}, 2, 4)
		for _, c := range []struct {
			sumToOne bool
			want     [4]float64
		}{
			{true, [4]float64{0.5, 0.5, 0.5, 0.5}},
			{false, [4]float64{0.3995, 0.3995, 0.4953, 0.4953}}, // e^2 of 1+2e^2+e, e^4 of e^-3+2e^4+1
		} {
			weights, chosen := nn.TopSoftmax(scores, 2, c.sumToOne)
			at, by := mlx.ToSlice[uint32](chosen), weights.Float32s()
			for i, want := range []uint32{1, 3, 1, 3} {
				if at[i] != want || math.Abs(float64(by[i])-c.want[i]) > 1e-4 {
					t.Errorf("sum to one %v: expert %d with weight %v, want %d with %v",
						c.sumToOne, at[i], by[i], want, c.want[i])
				}
			}
		}
	})
}
