package mlx_test

import (
	"math"
	"slices"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// roundTrip copies elements into an array and back, also through a transposed view.
func roundTrip[T mlx.Element](t *testing.T, want mlx.DType, data ...T) {
	t.Helper()
	mlxtest.Do(t, func(e *mlx.Thread) {
		if want == mlx.Float64 && e.Info().GPU {
			return // GPUs do not support it
		}
		x := mlx.FromSlice(e, data, 2, 3)
		if x.DType() != want || !slices.Equal(x.Shape(), []int{2, 3}) || x.Size() != 6 || x.Bytes() != 6*want.Size() {
			t.Errorf("%v of %d bytes", x, x.Bytes())
		}
		if got := mlx.ToSlice[T](x); !slices.Equal(got, data) {
			t.Errorf("%v: %v, want %v", want, got, data)
		}
		if got := mlx.ToSlice[T](mlx.FromBytes(e, x.ToBytes(), want, 6)); !slices.Equal(got, data) {
			t.Errorf("%v by bytes: %v, want %v", want, got, data)
		}
		across := []T{data[0], data[3], data[1], data[4], data[2], data[5]}
		if got := mlx.ToSlice[T](mlx.Transpose(x)); !slices.Equal(got, across) {
			t.Errorf("%v transposed: %v, want %v", want, got, across)
		}
		if got := mlx.ToSlice[T](mlx.Scalar(e, data[1])); !slices.Equal(got, data[1:2]) {
			t.Errorf("%v scalar: %v, want %v", want, got, data[1])
		}
		if got := mlx.ToSlice[T](mlx.FromSlice(e, data[:0], 0, 4)); len(got) != 0 {
			t.Errorf("%v of no elements: %v", want, got)
		}
		if got := mlx.FromSlice(e, data); !slices.Equal(got.Shape(), []int{6}) {
			t.Errorf("without a shape: %v", got)
		}
	})
}

func TestHostElements(t *testing.T) {
	roundTrip(t, mlx.Bool, true, false, false, true, true, false)
	roundTrip[uint8](t, mlx.Uint8, 0, 1, 2, 127, 128, math.MaxUint8)
	roundTrip[uint16](t, mlx.Uint16, 0, 1, 2, 3, 4, math.MaxUint16)
	roundTrip[uint32](t, mlx.Uint32, 0, 1, 2, 3, 4, math.MaxUint32)
	roundTrip[uint64](t, mlx.Uint64, 0, 1, 2, 3, 4, math.MaxUint64)
	roundTrip[int8](t, mlx.Int8, 0, 1, -2, 3, math.MinInt8, math.MaxInt8)
	roundTrip[int16](t, mlx.Int16, 0, 1, -2, 3, math.MinInt16, math.MaxInt16)
	roundTrip[int32](t, mlx.Int32, 0, 1, -2, 3, math.MinInt32, math.MaxInt32)
	roundTrip[int64](t, mlx.Int64, 0, 1, -2, 3, math.MinInt64, math.MaxInt64)
	roundTrip[float32](t, mlx.Float32, 0, 0.1, -2, math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Inf(-1)))
	roundTrip(t, mlx.Float64, 0, 0.1, -2, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(-1))
}

// FromSlice and ToSlice copy: later changes of the slices do not affect the array.
func TestHostCopies(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		data := []float32{1, 2}
		x := mlx.FromSlice(e, data)
		data[0] = 9
		out := x.Float32s()
		out[1] = 9
		if got := x.Float32s(); !slices.Equal(got, []float32{1, 2}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestFloat32sAndInt(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		x := mlx.FromSlice(e, []float32{1.5, -2})
		for _, d := range []mlx.DType{mlx.Float32, mlx.Float16, mlx.BFloat16} {
			if got := mlx.AsType(x, d).Float32s(); !slices.Equal(got, []float32{1.5, -2}) {
				t.Errorf("%v: %v", d, got)
			}
		}
		if got := mlx.FromSlice(e, []uint8{200}, 1, 1).Int(); got != 200 {
			t.Errorf("uint8: %d", got)
		}
		if got := mlx.Scalar(e, int64(math.MinInt64)).Int(); got != math.MinInt64 {
			t.Errorf("int64: %d", got)
		}
	})
}

func TestDTypes(t *testing.T) {
	for d := mlx.Bool; d <= mlx.BFloat16; d++ {
		mlxtest.Do(t, func(e *mlx.Thread) {
			if d == mlx.Float64 && e.Info().GPU {
				return
			}
			// The type codes of Go and C++ agree: in the message, in the result and in the size.
			x := mlx.Zeros(e, d, 3)
			if x.DType() != d || len(x.ToBytes()) != 3*d.Size() {
				t.Errorf("%v: %v of %d bytes", d, x, len(x.ToBytes()))
			}
			err := func() (err error) {
				defer func() { err, _ = recover().(error) }()
				mlx.Reshape(x, 5)
				return nil
			}()
			wantError(t, err, "Reshape("+d.String()+"[3])")
			if want := d == mlx.Float16 || d == mlx.Float32 || d == mlx.Float64 || d == mlx.BFloat16; d.Float() != want {
				t.Errorf("%v.Float() is %v", d, d.Float())
			}
		})
	}
	if got := mlx.DType(99).String(); got != "dtype(99)" || mlx.DType(99).Size() != 0 || mlx.DType(-1).Size() != 0 {
		t.Errorf("an unknown type is %s of %d bytes", got, mlx.DType(99).Size())
	}
}

func TestArrayFacts(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		x := mlx.Zeros(e, mlx.BFloat16, 2, 3)
		if x.String() != "bfloat16[2 3]" || x.Rank() != 2 || x.Dim(0) != 2 || x.Dim(-1) != 3 || x.Thread() != e {
			t.Errorf("%v: rank %d, axes %d and %d", x, x.Rank(), x.Dim(0), x.Dim(-1))
		}
		if got := mlx.Scalar(e, true).String(); got != "bool[]" {
			t.Errorf("a scalar is %s", got)
		}
		if got := (*mlx.Array)(nil).String(); got != "nil" {
			t.Errorf("no array is %s", got)
		}
		if !mlx.SameShape(x, mlx.Zeros(e, mlx.Int8, 2, 3)) || mlx.SameShape(x, mlx.Transpose(x)) {
			t.Error("SameShape compares other things than shapes")
		}
	})
}
