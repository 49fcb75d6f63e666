package mlx_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// Invalid arguments of a caller cause an *Error that names the operation.
func TestHostileArguments(t *testing.T) {
	const wide = math.MaxInt32 + 1
	nine := []int{1, 1, 1, 1, 1, 1, 1, 1, 1}
	for _, test := range []struct {
		want string
		call func(e *mlx.Thread, x *mlx.Array)
	}{
		// absent arrays
		{"Add: an array is nil", func(e *mlx.Thread, x *mlx.Array) { mlx.Add(x, nil) }},
		{"Add: no array was given", func(e *mlx.Thread, x *mlx.Array) { mlx.Add(nil, nil) }},
		{"Concatenate: no array was given", func(e *mlx.Thread, x *mlx.Array) { mlx.Concatenate(0) }},
		{"Stack: an array is nil", func(e *mlx.Thread, x *mlx.Array) { mlx.Stack(0, x, nil) }},
		{"Slice: an array is nil", func(e *mlx.Thread, x *mlx.Array) { mlx.Slice(nil, mlx.All()) }},
		{"SliceAxis: an array is nil", func(e *mlx.Thread, x *mlx.Array) { mlx.SliceAxis(nil, 0, mlx.All()) }},
		{"SliceUpdate: an array is nil", func(e *mlx.Thread, x *mlx.Array) { mlx.SliceUpdate(nil, x, mlx.All()) }},
		{"sliceUpdate: an array is nil", func(e *mlx.Thread, x *mlx.Array) { mlx.SliceUpdate(x, nil, mlx.All(), mlx.All()) }},
		{"ToSlice: an array is nil", func(e *mlx.Thread, x *mlx.Array) { mlx.ToSlice[float32](nil) }},
		{"ToBytes: an array is nil", func(e *mlx.Thread, x *mlx.Array) { (*mlx.Array)(nil).ToBytes() }},
		{"Float32s: an array is nil", func(e *mlx.Thread, x *mlx.Array) { (*mlx.Array)(nil).Float32s() }},
		{"Int: an array is nil", func(e *mlx.Thread, x *mlx.Array) { (*mlx.Array)(nil).Int() }},
		// shapes
		{"FromSlice: 5 elements for float32[2 3]",
			func(e *mlx.Thread, x *mlx.Array) { mlx.FromSlice(e, make([]float32, 5), 2, 3) }},
		{"FromSlice: 6 elements for float32[-2 -3]",
			func(e *mlx.Thread, x *mlx.Array) { mlx.FromSlice(e, make([]float32, 6), -2, -3) }},
		{"FromSlice: 0 elements", func(e *mlx.Thread, x *mlx.Array) {
			mlx.FromSlice[uint8](e, nil, 1<<16, 1<<16, 1<<16, 1<<16)
		}},
		{"FromHost: dimension -1", func(e *mlx.Thread, x *mlx.Array) { mlx.FromSlice[uint8](e, nil, 0, -1) }},
		{"FromHost: dimension 4294967296", func(e *mlx.Thread, x *mlx.Array) { mlx.FromSlice[uint8](e, nil, 0, 1<<32) }},
		{"FromHost: rank 9", func(e *mlx.Thread, x *mlx.Array) { mlx.FromSlice(e, []int8{1}, nine...) }},
		{"FromBytes: 7 bytes for float32[2]", func(e *mlx.Thread, x *mlx.Array) {
			mlx.FromBytes(e, make([]byte, 7), mlx.Float32, 2)
		}},
		{"FromBytes: 8 bytes for dtype(99)[2]",
			func(e *mlx.Thread, x *mlx.Array) { mlx.FromBytes(e, make([]byte, 8), 99, 2) }},
		{"unknown dtype code -1", func(e *mlx.Thread, x *mlx.Array) { mlx.FromBytes(e, nil, -1, 0) }},
		{"Zeros(): ", func(e *mlx.Thread, x *mlx.Array) { mlx.Zeros(e, mlx.Int8, -3) }},
		{"Zeros(): unknown dtype code 99", func(e *mlx.Thread, x *mlx.Array) { mlx.Zeros(e, 99, 3) }},
		{"Zeros(): 2147483648 does not fit 32 bits", func(e *mlx.Thread, x *mlx.Array) { mlx.Zeros(e, mlx.Int8, wide) }},
		{"Zeros(): a result has more than 8 axes", func(e *mlx.Thread, x *mlx.Array) { mlx.Zeros(e, mlx.Int8, nine...) }},
		{"Reshape(float32[2 3])", func(e *mlx.Thread, x *mlx.Array) { mlx.Reshape(x, -1, -1) }},
		{"BroadcastTo(float32[2 3])", func(e *mlx.Thread, x *mlx.Array) { mlx.BroadcastTo(x, 2, -3) }},
		{"Tile(float32[2 3])", func(e *mlx.Thread, x *mlx.Array) { mlx.Tile(x, math.MaxInt32, math.MaxInt32) }},
		{"Pad(float32[2 3])", func(e *mlx.Thread, x *mlx.Array) { mlx.Pad(x, []int{-1, 0}, []int{0, 0}, 0) }},
		{"Repeat(float32[2 3])", func(e *mlx.Thread, x *mlx.Array) { mlx.Repeat(x, -1, 0) }},
		// axes
		{"Sum(float32[2 3])", func(e *mlx.Thread, x *mlx.Array) { mlx.Sum(x, false, 2) }},
		{"Sum(float32[2 3])", func(e *mlx.Thread, x *mlx.Array) { mlx.Sum(x, false, 0, -2) }},
		{"ArgMax(float32[2 3]): ", func(e *mlx.Thread, x *mlx.Array) { mlx.ArgMax(x, -3, false) }},
		{"Transpose(float32[2 3]): ", func(e *mlx.Thread, x *mlx.Array) { mlx.Transpose(x, 0, 0) }},
		{"Sort(float32[2 3]): 4294967296 does not fit 32 bits", func(e *mlx.Thread, x *mlx.Array) { mlx.Sort(x, 1<<32) }},
		{"Concatenate(float32[2 3], float32[2 3])", func(e *mlx.Thread, x *mlx.Array) { mlx.Concatenate(2, x, x) }},
		// counts
		{"too many results", func(e *mlx.Thread, x *mlx.Array) { mlx.SplitEven(mlx.Zeros(e, mlx.Int8, 2048), 2048, 0) }},
		{"SplitEven(float32[2 3])", func(e *mlx.Thread, x *mlx.Array) { mlx.SplitEven(x, 0, 0) }},
		{"Eye()", func(e *mlx.Thread, x *mlx.Array) { mlx.Eye(e, -1, 2, 0, mlx.Float32) }},
		{"Tri()", func(e *mlx.Thread, x *mlx.Array) { mlx.Tri(e, 2, -1, 0, mlx.Float32) }},
		{"Arange()", func(e *mlx.Thread, x *mlx.Array) { mlx.Arange(e, 0, 1, 0, mlx.Float32) }},
		{"Arange()", func(e *mlx.Thread, x *mlx.Array) { mlx.Arange(e, 0, math.Inf(1), 1, mlx.Float32) }},
		{"RandomSplit(uint32[2])", func(e *mlx.Thread, x *mlx.Array) { mlx.RandomSplit(mlx.RandomKey(e, 1), -1) }},
		{"RandomBits(float32[2 3])", func(e *mlx.Thread, x *mlx.Array) { mlx.RandomBits(x, 4) }},
		{"Int(float32[2 3]): not one element", func(e *mlx.Thread, x *mlx.Array) { x.Int() }},
		{"ToSlice(float32[2 3]): not int32", func(e *mlx.Thread, x *mlx.Array) { mlx.ToSlice[int32](x) }},
		// model blocks
		{"the 4 largest of float32[2 3]", func(e *mlx.Thread, x *mlx.Array) { mlx.Largest(x, 4) }},
		{"the 0 largest of float32[2 3]", func(e *mlx.Thread, x *mlx.Array) { mlx.Largest(x, 0) }},
		{"cannot choose 4 of the experts of float32[2 3]",
			func(e *mlx.Thread, x *mlx.Array) { mlx.ChooseExperts(x, nil, nil, 4, 1, 1, 2, 1, true, 1) }},
		{"1 of 2 groups of the experts of float32[2 3]",
			func(e *mlx.Thread, x *mlx.Array) { mlx.ChooseExperts(x, nil, nil, 1, 2, 1, 2, 1, true, 1) }},
		{"the correction float32[2 3] does not fit the scores",
			func(e *mlx.Thread, x *mlx.Array) { mlx.ChooseExperts(x, x, nil, 1, 1, 1, 2, 1, true, 1) }},
		{"unknown scoring 3", func(e *mlx.Thread, x *mlx.Array) { mlx.ChooseExperts(x, nil, nil, 1, 1, 1, 2, 3, true, 1) }},
		{"the experts uint32[2 2] do not fit the scores", func(e *mlx.Thread, x *mlx.Array) {
			mlx.ChooseExperts(x, nil, mlx.Zeros(e, mlx.Uint32, 2, 2), 1, 1, 1, 2, 1, true, 1)
		}},
		{"identity experts: weights float32[2 3] and experts float32[2 3]", func(e *mlx.Thread, x *mlx.Array) {
			mlx.IdentityExperts(x, x, 1)
		}},
		{"own experts: weights float32[2 3] and experts uint32[2 3]", func(e *mlx.Thread, x *mlx.Array) {
			mlx.OwnExperts(x, mlx.Zeros(e, mlx.Uint32, 2, 3), -1, 2)
		}},
		{"numbers float32[2 3] of 2 streams", func(e *mlx.Thread, x *mlx.Array) {
			mlx.StreamWeights(x, mlx.Zeros(e, mlx.Float32, 3), mlx.Zeros(e, mlx.Float32, 3), 2, 1, 1e-6)
		}},
		{"rows float32[2 3] do not fit the weights float32[2 3]",
			func(e *mlx.Thread, x *mlx.Array) { mlx.CombineRows(x, x, nil, nil, nil, nil) }},
		{"the biases float32[2 3] do not fit rows float32[2 1 3]", func(e *mlx.Thread, x *mlx.Array) {
			mlx.CombineRows(mlx.ExpandDims(x, 1), mlx.Zeros(e, mlx.Float32, 2, 1), x, nil, nil, nil)
		}},
		{"the biases float32[2 3] do not fit rows float32[2 2]", func(e *mlx.Thread, x *mlx.Array) {
			mlx.ClampedSwiGLU(mlx.Zeros(e, mlx.Float32, 2, 2), x, mlx.Zeros(e, mlx.Uint32, 2), 1, 1, 1)
		}},
		{"cannot split the last axis of float32[2 3]", func(e *mlx.Thread, x *mlx.Array) {
			mlx.ClampedSwiGLU(x, nil, nil, 1, 1, 1)
		}},
		{"alpha 1.000000 and limit 0.000000", func(e *mlx.Thread, x *mlx.Array) {
			mlx.ClampedSwiGLU(mlx.Zeros(e, mlx.Float32, 2, 2), nil, nil, 1, 0, 1)
		}},
		{"experts float32[2 3] and weights float32[2 3] do not fit rows float32[2 3]", func(e *mlx.Thread, x *mlx.Array) {
			w := mlx.Zeros(e, mlx.Float32, 2, 4, 3)
			mlx.GatedExperts(x, x, x, []*mlx.Array{w, w}, []int{-1, -1}, []int{0, 0}, []int{0, 0}, false, 0, 0, 0,
				nil, nil, nil)
		}},
		{"1 arrays are not enough for the formats", func(e *mlx.Thread, x *mlx.Array) {
			mlx.GatedExperts(x, x, x, []*mlx.Array{mlx.Zeros(e, mlx.Float32, 2, 4, 3)}, []int{-1, -1}, []int{0, 0}, []int{0, 0},
				false, 0, 0, 0, nil, nil, nil)
		}},
		{"1 biases, want two", func(e *mlx.Thread, x *mlx.Array) {
			w := mlx.Zeros(e, mlx.Float32, 2, 4, 3)
			chosen := mlx.Zeros(e, mlx.Uint32, 2, 3)
			mlx.GatedExperts(x, x, chosen, []*mlx.Array{w, w}, []int{-1, -1}, []int{0, 0}, []int{0, 0}, false, 1, 1, 1,
				[]*mlx.Array{x}, nil, nil)
		}},
		{"weights for 1 norms, but 2 arrays", func(e *mlx.Thread, x *mlx.Array) {
			mlx.RotateNormedRows([]*mlx.Array{x, x}, []*mlx.Array{x}, 0, false, mlx.Zeros(e, mlx.Int32, 2),
				mlx.Zeros(e, mlx.Float32, 1), false, false, 1)
		}},
		{"the last axis of float32[2 3]", func(e *mlx.Thread, x *mlx.Array) { mlx.SwiGLU(x, nil) }},
		{"rows int32[1] of a table float32[]", func(e *mlx.Thread, x *mlx.Array) {
			mlx.TableRows(mlx.Scalar(e, float32(1)), mlx.Zeros(e, mlx.Int32, 1), 1)
		}},
		{"float32[2 3] is not [2, heads, 2 or more]", func(e *mlx.Thread, x *mlx.Array) {
			mlx.RotateRows([]*mlx.Array{x}, mlx.Zeros(e, mlx.Int32, 2), mlx.Zeros(e, mlx.Float32, 1), false, false, 1)
		}},
		{"2 sections of 3 pairs for 2 rows of positions and 1 pairs", func(e *mlx.Thread, x *mlx.Array) {
			mlx.RotateRows([]*mlx.Array{mlx.Zeros(e, mlx.Float32, 2, 1, 3)}, mlx.Zeros(e, mlx.Int32, 2, 2),
				mlx.Zeros(e, mlx.Float32, 1), false, true, 1, 1, 2)
		}},
		{"segments of 3 rows for 2", func(e *mlx.Thread, x *mlx.Array) {
			mlx.CausalConv(x, x, nil, []*mlx.Array{mlx.Zeros(e, mlx.Float32, 1, 3)}, true, false, false, 3)
		}},
		{"states float32[2 3] do not fit together", func(e *mlx.Thread, x *mlx.Array) {
			mlx.CausalConv(x, x, nil, []*mlx.Array{x}, true, false, false, 2)
		}},
		{"do not fit together", func(e *mlx.Thread, x *mlx.Array) {
			mlx.GatedDeltaRows(x, x, x, x, x, []*mlx.Array{x}, false, false, 2)
		}},
		{"do not fit together", func(e *mlx.Thread, x *mlx.Array) {
			mlx.StateScan(x, x, x, x, x, nil, []*mlx.Array{x}, false, 2)
		}},
		{"do not fit together", func(e *mlx.Thread, x *mlx.Array) {
			mlx.ChannelScan(x, x, x, x, x, nil, []*mlx.Array{x}, false, 2)
		}},
		{"do not fit together", func(e *mlx.Thread, x *mlx.Array) { mlx.DecayedSum(x, x, []*mlx.Array{x}, false, 2) }},
		{"do not fit together", func(e *mlx.Thread, x *mlx.Array) { mlx.StepSizes(x, x, 0, 0) }},
		{"do not fit together", func(e *mlx.Thread, x *mlx.Array) {
			mlx.WKVScan(x, x, x, x, x, []*mlx.Array{x}, 1, []*mlx.Array{x}, false, 2)
		}},
		{"do not fit together", func(e *mlx.Thread, x *mlx.Array) {
			mlx.UnitGates(x, x, x, []*mlx.Array{x, x, x}, mlx.Zeros(e, mlx.Int32, 2))
		}},
		{"a range is needed for each array", func(e *mlx.Thread, x *mlx.Array) { mlx.JoinSlots([]int{0}, 1, x) }},
		{"no array was given", func(e *mlx.Thread, x *mlx.Array) { mlx.JoinSlots(nil, 1) }},
		{"must be [1, heads, slots, size]", func(e *mlx.Thread, x *mlx.Array) { mlx.JoinSlots([]int{0, 1}, 1, x) }},
		{"not within its array", func(e *mlx.Thread, x *mlx.Array) {
			mlx.JoinSlots([]int{1, 3}, 3, mlx.ExpandDims(x, 0, 1))
		}},
		{"more slots than the result", func(e *mlx.Thread, x *mlx.Array) {
			mlx.JoinSlots([]int{0, 2}, 1, mlx.ExpandDims(x, 0, 1))
		}},
		{"are not [T, n, size]", func(e *mlx.Thread, x *mlx.Array) { mlx.MixRows(x, nil, nil, nil) }},
		{"do not fit together", func(e *mlx.Thread, x *mlx.Array) { mlx.MixRows(mlx.ExpandDims(x, 0), x, nil, nil) }},
		{"without scales", func(e *mlx.Thread, x *mlx.Array) { mlx.MixRows(mlx.ExpandDims(x, 0), nil, x, nil) }},
		{"do not fit together", func(e *mlx.Thread, x *mlx.Array) { mlx.BlendRows(x, x, mlx.Transpose(x)) }},
		{"do not fit together", func(e *mlx.Thread, x *mlx.Array) { mlx.RescaleRows(x, mlx.Transpose(x), 1) }},
		{"below 0", func(e *mlx.Thread, x *mlx.Array) { mlx.KnownIDs(mlx.Zeros(e, mlx.Int32, 2), 0) }},
		// limits
		{"SetBudget: a limit is negative", func(e *mlx.Thread, x *mlx.Array) { e.SetBudget(-1) }},
	} {
		err := mlxtest.Try(t, func(e *mlx.Thread) { test.call(e, mlx.Zeros(e, mlx.Float32, 2, 3)) })
		wantError(t, err, test.want)
	}
	stillWorks(t)
}

// Sizes that overflow 64 bits exceed any budget; they do not wrap around.
func TestSizesDoNotWrap(t *testing.T) {
	for _, shape := range [][]int{
		{1 << 30, 1 << 30, 1 << 30}, {1 << 16, 1 << 16, 1 << 16, 1 << 16}, {math.MaxInt32, math.MaxInt32, 4},
		{1 << 30, 1 << 30, 1 << 2},
	} {
		err := mlxtest.Try(t, func(e *mlx.Thread) { mlx.Zeros(e, mlx.Float32, shape...) })
		if !errors.Is(err, mlx.ErrOutOfMemory) {
			t.Errorf("%v: %v", shape, err)
		}
	}
	stillWorks(t)
}

// Arguments for which MLX itself crashes or loops forever (bridge/src/core/checks.h).
func TestFatalArguments(t *testing.T) {
	for _, test := range []struct {
		want string
		call func(e *mlx.Thread, f func(shape ...int) *mlx.Array)
	}{
		{"groups is 0, not positive", func(e *mlx.Thread, f func(...int) *mlx.Array) {
			mlx.Conv1D(f(1, 4, 2), f(2, 2, 2), 1, 0, 1, 0)
		}},
		{"-2 is negative", func(e *mlx.Thread, f func(...int) *mlx.Array) {
			mlx.Conv2D(f(1, 6, 5, 2), f(3, 3, 2, 2), 3, -2, 1)
		}},
		{"empty", func(e *mlx.Thread, f func(...int) *mlx.Array) { mlx.Conv1D(f(2, 3, 0), f(2, 3, 0), 1, 0, 1, 1) }},
		{"empty", func(e *mlx.Thread, f func(...int) *mlx.Array) {
			mlx.GatherMM(f(0, 3, 2), f(1, 2, 1), nil, mlx.Zeros(e, mlx.Uint32, 2), true)
		}},
		{"empty", func(e *mlx.Thread, f func(...int) *mlx.Array) {
			mlx.TakeAlongAxis(f(2, 0, 4), mlx.Zeros(e, mlx.Uint32, 2, 1, 4), 1)
		}},
		{"empty", func(e *mlx.Thread, f func(...int) *mlx.Array) {
			mlx.QuantizedMatMul(f(0, 64), packedOnes(e)[0], packedOnes(e)[1], packedOnes(e)[2], true, 64, 4, mlx.Affine)
		}},
		{"empty", func(e *mlx.Thread, f func(...int) *mlx.Array) {
			mlx.Attention(f(4, 0, 3, 5), f(4, 0, 3, 5), f(4, 0, 3, 5), nil, nil, 1, true)
		}},
		{"too many results", func(e *mlx.Thread, f func(...int) *mlx.Array) { mlx.SplitEven(f(4, 0), math.MaxInt32, 1) }},
		{"different rows", func(e *mlx.Thread, f func(...int) *mlx.Array) {
			w := packedOnes(e)
			mlx.QuantizedMatMul(f(1, 64), w[0], mlx.Slice(w[1], mlx.At(0), mlx.All()), mlx.Slice(w[2], mlx.At(0), mlx.All()),
				true, 64, 4, mlx.Affine)
		}},
		{"format mxfp8 does not have groups", func(e *mlx.Thread, f func(...int) *mlx.Array) {
			mlx.QuantizedMatMul(f(1, 3), mlx.Zeros(e, mlx.Uint32, 3, 16), mlx.Zeros(e, mlx.Uint8, 3, 8), nil, false, 0, 2,
				mlx.MXFP8)
		}},
		{"more axes than the array", func(e *mlx.Thread, f func(...int) *mlx.Array) {
			mlx.SliceUpdateDynamic(f(4, 1), f(2, 2, 2, 1), mlx.Zeros(e, mlx.Int32, 1), 0)
		}},
	} {
		err := mlxtest.Try(t, func(e *mlx.Thread) {
			test.call(e, func(shape ...int) *mlx.Array { return mlx.Zeros(e, mlx.Float32, shape...) })
		})
		wantError(t, err, test.want)
	}
	mlxtest.Do(t, func(e *mlx.Thread) {
		least, minus := mlx.FromSlice(e, []int32{math.MinInt32, -7, 7}), mlx.Scalar(e, int32(-1))
		if got := mlx.ToSlice[int32](mlx.FloorDivide(least, minus)); !slices.Equal(got, []int32{math.MinInt32, 7, -7}) {
			t.Errorf("divided by -1: %v", got)
		}
		if got := mlx.ToSlice[int32](mlx.Remainder(least, minus)); !slices.Equal(got, []int32{0, 0, 0}) {
			t.Errorf("modulo -1: %v", got)
		}
		got := mlx.FloorDivide(mlx.FromSlice(e, []uint8{250}), mlx.FromSlice(e, []uint8{255}))
		if got.DType() != mlx.Uint8 || got.Int() != 0 {
			t.Errorf("250/255 is %v", got.Int())
		}
		column := mlx.Transpose(mlx.Zeros(e, mlx.Float32, 0, 3, 2), 1, 2, 0)
		if got := mlx.Sum(column, false, -1).Float32s(); !slices.Equal(got, make([]float32, 6)) {
			t.Errorf("the sum of no elements is %v", got)
		}
		mlx.Eval(mlx.RMSNorm(mlx.Transpose(mlx.Zeros(e, mlx.Float32, 0, 3)), nil, 1e-5))
		if got := mlx.Tri(e, math.MaxInt32, 0, 0, mlx.Float32); len(got.ToBytes()) != 0 {
			t.Errorf("a triangle without columns is %v", got)
		}
		x := mlx.Ones(e, mlx.Float32, 2, 3)
		none := []*mlx.Array{mlx.Zeros(e, mlx.Int32, 0)}
		if got := mlx.ScatterAdd(x, none, mlx.Zeros(e, mlx.Float32, 0, 1, 3), 0).Float32s(); got[0] != 1 {
			t.Errorf("adding no updates gives %v", got)
		}
	})
}

func packedOnes(e *mlx.Thread) []*mlx.Array {
	return mlx.Quantize(mlx.Ones(e, mlx.Float32, 2, 64), 64, 4, mlx.Affine, nil)
}

// An operation may also fail during evaluation, on MLX's own threads. The work that requested it gets the error, and no
// state is left behind: neither in MLX's count of running tasks, for which a later evaluation above the memory limit
// would wait forever, nor in later work.
func TestFailuresOfEvaluation(t *testing.T) {
	bad := func(e *mlx.Thread) *mlx.Array {
		x := mlx.Ones(e, mlx.Float32, 2, 2)
		return mlx.TakeAlongAxis(x, x, 0) // floating-point indices are invalid
	}
	if mlxtest.Open(t).Info().GPU {
		t.Skip("a GPU fails in other places")
	}
	for i := range 300 {
		err := mlxtest.Try(t, func(e *mlx.Thread) { mlx.Eval(bad(e)) })
		if err == nil {
			t.Fatal("floating point indices were taken")
		}
		if i == 0 {
			wantError(t, err, "Eval: ")
		}
	}
	wantError(t, mlxtest.Try(t, func(e *mlx.Thread) { bad(e).Float32s() }), "ToHost(float32[2 2])")
	for range 20 {
		err := mlxtest.Try(t, func(e *mlx.Thread) {
			x := bad(e)
			mlx.AsyncEval(x)
			x.Float32s()
		})
		wantError(t, err, "indices type")
		stillWorks(t)
	}
	mlxtest.Do(t, func(e *mlx.Thread) {
		defer smallBudget(e, 1<<16)()
		x := mlx.Ones(e, mlx.Float32, 1<<13)
		sum := mlx.Zeros(e, mlx.Float32, 1)
		for i := range 64 {
			sum = mlx.Add(sum, mlx.Sum(mlx.AddScalar(x, float64(i)), true))
		}
		if got := sum.Float32s()[0]; got != (64*63/2+64)*(1<<13) {
			t.Errorf("above the limit the sum is %v", got)
		}
	})
}
