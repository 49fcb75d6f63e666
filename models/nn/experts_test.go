package nn_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingotml/ingot/arch/config"
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
					block := nn.NewExperts(w, "x", config.Experts{Count: experts, PerToken: k, Intermediate: width}, hidden)
					if err := w.Err(); err != nil {
						t.Error(err)
						return
					}
					x, shared, gate := random(2, rows, hidden), random(3, rows, hidden), random(4, rows, 1)
					if rows == 3 {
						block.ThroughGELU()
						activate = mlx.GEGLUTanh
					}
					top := config.Experts{PerToken: k, NormTopK: true}
					weights, chosen := nn.Choose(random(5, rows, experts), nil, top, config.Router{})
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

// Experts with biases and a clamped activation match the formula of gpt-oss in float64, in every format, for one row
// and for many. The limits are reached.
func TestBiasedExperts(t *testing.T) {
	const experts, hidden, width, k = 5, 128, 64, 2
	clamp := config.Clamp{Alpha: 1.702, Limit: 0.8}
	for _, f := range bankFormats {
		for _, rows := range []int{1, 3, 40, 300} { // large counts are not fused
			t.Run(fmt.Sprintf("mode %d, %d bits, %d rows", f.Mode, f.Bits, rows), func(t *testing.T) {
				mlxtest.Do(t, func(e *mlx.Thread) {
					keys := mlx.RandomSplit(mlx.RandomKey(e, 6), 6)
					random := func(i int, shape ...int) *mlx.Array {
						return mlx.RandomNormal(mlx.Reshape(mlx.SliceAxis(keys, 0, mlx.At(i)), 2), mlx.Float32, shape...)
					}
					gateUp, plainGateUp := stored(e, mlx.MultiplyScalar(random(0, experts, 2*width, hidden), 0.1), f)
					down, plainDown := stored(e, mlx.MultiplyScalar(random(1, experts, hidden, width), 0.1), f)
					wide, out := random(2, experts, 2*width), random(3, experts, hidden)
					w := nn.NewWeights(mlx.Float32, map[string]*nn.Tensor{
						"x.gate_up_proj.weight": gateUp, "x.gate_up_proj.bias": {Array: mlx.Keep(wide)},
						"x.down_proj.weight": down, "x.down_proj.bias": {Array: mlx.Keep(out)},
					})
					defer w.Free()
					block := nn.NewExperts(w, "x", config.Experts{
						Count: experts, PerToken: k, Intermediate: width, Bias: true, Clamp: clamp,
					}, hidden)
					if err := w.Err(); err != nil {
						t.Error(err)
						return
					}
					x := random(4, rows, hidden)
					top := config.Experts{PerToken: k, NormTopK: true}
					weights, chosen := nn.Choose(random(5, rows, experts), nil, top, config.Router{})
					got := block.Apply(x, weights, chosen, nn.Shared{}).Float32s()
					sorted := block.ApplySorted(x, weights, chosen).Float32s()
					b := biased{
						gateUp: plainGateUp.Float32s(), down: plainDown.Float32s(), wide: wide.Float32s(), out: out.Float32s(),
						width: width, hidden: hidden, clamp: clamp,
					}
					xs, by, at := x.Float32s(), weights.Float32s(), mlx.ToSlice[uint32](chosen)
					for row := range rows {
						want := make([]float64, hidden)
						for j := row * k; j < (row+1)*k; j++ {
							for i, v := range b.apply(int(at[j]), xs[row*hidden:][:hidden]) {
								want[i] += float64(by[j]) * v
							}
						}
						for i, v := range want {
							for _, g := range []float32{got[row*hidden+i], sorted[row*hidden+i]} {
								if !(math.Abs(float64(g)-v) < 1e-4) {
									t.Errorf("row %d, element %d is %v, want %v", row, i, g, v)
									return
								}
							}
						}
					}
				})
			})
		}
	}
}

// biased are experts as gpt-oss has them.
type biased struct {
	gateUp, down, wide, out []float32
	width, hidden           int
	clamp                   config.Clamp
}

// apply computes an expert's output in float64.
func (b biased) apply(expert int, x []float32) []float64 {
	row := func(w, bias []float32, n, width int, x func(int) float64) float64 {
		sum := float64(bias[n])
		for i, v := range w[n*width:][:width] {
			sum += float64(v) * x(i)
		}
		return sum
	}
	in := func(n int) float64 {
		return row(b.gateUp, b.wide, expert*2*b.width+n, b.hidden, func(i int) float64 { return float64(x[i]) })
	}
	h := make([]float64, b.width)
	for n := range h {
		g := min(in(n), b.clamp.Limit)
		u := max(-b.clamp.Limit, min(in(b.width+n), b.clamp.Limit))
		h[n] = (u + 1) * g / (1 + math.Exp(-b.clamp.Alpha*g))
	}
	y := make([]float64, b.hidden)
	for n := range y {
		y[n] = row(b.down, b.out, expert*b.hidden+n, b.width, func(i int) float64 { return h[i] })
	}
	return y
}

// Missing experts and experts of wrong shape are errors of the weights, reported before any step.
func TestExpertsNeedTheirWeights(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		gateUp := mlx.Keep(mlx.Zeros(e, mlx.Float32, 2, 8, 4))
		w := nn.NewWeights(mlx.Float32, map[string]*nn.Tensor{"x.gate_up_proj": {Array: gateUp}})
		defer w.Free()
		nn.NewExperts(w, "x", config.Experts{Count: 2, PerToken: 1, Intermediate: 4}, 4)
		if err := w.Err(); err == nil || err.Error() != "tensor x.down_proj is missing: "+nn.ErrWeights.Error() {
			t.Errorf("got %v", err)
		}
	})
}

// Values are computed by hand, from e^x and 1/(1+e^-x).
func TestChoose(t *testing.T) {
	one := config.Experts{PerToken: 2, NormTopK: true}
	grouped := config.Router{Sigmoid: true, Groups: 2, TopGroups: 1}
	for name, c := range map[string]struct {
		scores     []float32
		correction []float32
		experts    config.Experts
		router     config.Router
		chosen     []uint32
		weights    []float64
	}{
		"softmax of the chosen": {scores: []float32{0, 2, 1, 2}, experts: one,
			chosen: []uint32{1, 3}, weights: []float64{0.5, 0.5}},
		"softmax of all": {scores: []float32{-3, 4, 0, 4}, experts: config.Experts{PerToken: 2},
			chosen: []uint32{1, 3}, weights: []float64{0.4953, 0.4953}},
		"the lowest of equals": {scores: []float32{0, 2, 1, 2}, experts: config.Experts{PerToken: 1},
			chosen: []uint32{1}, weights: []float64{0.3995}},
		"softmax with a correction": {scores: []float32{0, 2, 1, 2}, correction: []float32{0, 0, 1, 0}, experts: one,
			chosen: []uint32{2, 1}, weights: []float64{0.2689, 0.7311}},
		"sigmoid with a correction and a scale": {scores: []float32{0, 2, 1, 2}, correction: []float32{0.5, 0, 0, 0},
			experts: one, router: config.Router{Sigmoid: true, Scaling: 2},
			chosen: []uint32{0, 1}, weights: []float64{0.7243, 1.2757}},
		"the best group": {scores: []float32{0, 2, 1, 2}, experts: config.Experts{PerToken: 2}, router: grouped,
			chosen: []uint32{3, 2}, weights: []float64{0.8808, 0.7311}},
		"the lowest of equal groups": {scores: []float32{1, 2, 1, 2}, experts: config.Experts{PerToken: 2}, router: grouped,
			chosen: []uint32{1, 0}, weights: []float64{0.8808, 0.7311}},
		// 1.5 is 0.5 below 2, which is 0.25 of it; 1.2 is 0.3 below 1.5, which is 0.2 of it.
		"two, one after the other": {scores: []float32{1.5, 2, 1.2, -1},
			router: config.Router{SparseMixer: true, Jitter: 0.15},
			chosen: []uint32{1, 0}, weights: []float64{0.6225, 0.5744}},
		"the lowest of equals, one after the other": {scores: []float32{0, -1, 0, -1},
			router: config.Router{SparseMixer: true, Jitter: 0.01},
			chosen: []uint32{0, 2}, weights: []float64{0.5, 1}},
		// Negative scores are relative to the lower one: -1 is 0.5 below -0.5, which is 0.5 of 1.
		"two negative ones": {scores: []float32{-1, -0.5, -4, -4}, router: config.Router{SparseMixer: true, Jitter: 0.3},
			chosen: []uint32{1, 0}, weights: []float64{0.6225, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			mlxtest.Do(t, func(e *mlx.Thread) {
				var correction *mlx.Array
				if c.correction != nil {
					correction = mlx.FromSlice(e, c.correction)
				}
				weights, chosen := nn.Choose(mlx.FromSlice(e, c.scores, 1, 4), correction, c.experts, c.router)
				at, by := mlx.ToSlice[uint32](chosen), weights.Float32s()
				for i, want := range c.chosen {
					if at[i] != want || math.Abs(float64(by[i])-c.weights[i]) > 1e-4 {
						t.Errorf("expert %d with weight %v, want %d with %v", at[i], by[i], want, c.weights[i])
					}
				}
			})
		})
	}
}
