package mlx_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// For any arguments an operation either returns an array that can be computed or fails with an *Error. It never crashes
// or panics with another value. With -v each call is printed before it is made.
func TestRandomCalls(t *testing.T) {
	rounds := runtest.Pick(100, 640)
	names := slices.Sorted(maps.Keys(mlx.OpFuncs))
	names = slices.DeleteFunc(names, unchecked)
	r := random{rand.New(rand.NewPCG(3, 14))}
	before := live(t)
	computed := map[string]int{}
	for n := range rounds * len(names) {
		name := names[n%len(names)]
		if r.try(t, name, func(e *mlx.Thread) []reflect.Value { return r.arguments(e, name) }) == nil {
			computed[name]++
		}
	}
	for _, name := range names {
		if computed[name] == 0 && !slices.Contains(constrained, name) {
			t.Errorf("%s never succeeded: its arguments are not varied well", name)
		}
	}
	if got := live(t) - before; got != 0 {
		t.Errorf("%d arrays are left over", got)
	}
}

// Valid arguments of which one or two are damaged.
func TestDamagedCalls(t *testing.T) {
	rounds := runtest.Pick(4, 40)
	r := random{rand.New(rand.NewPCG(2, 71))}
	g := openGoldens(t)
	for range rounds {
		for _, c := range g.cases {
			if unchecked(c.Op) {
				continue
			}
			_ = r.try(t, c.Op, func(e *mlx.Thread) []reflect.Value { return r.damage(e, c.Op, g.arguments(e, c)) })
		}
	}
}

// constrained operations rarely accept random arguments.
var constrained = []string{"AddMM", "AddRMSNorm", "Attention", "BlendRows", "CausalConv", "ChannelScan",
	"ChooseExperts", "ClampedSwiGLU", "CombineRows", "Conv1D", "Conv2D", "Decay", "DecayedSum", "Dequantize", "FromFP8",
	"Gather", "GatedExperts", "GatherMM", "GatherQMM", "GatedDeltaRows", "GatedDeltaUpdate", "IdentityExperts",
	"JoinSlots", "LayerNorm", "LinearLayers", "MixRows", "OwnExperts", "OwnPackedTableRows", "PackRows", "PackedTableRows",
	"QuantizedMatMul", "Quantize", "RescaleRows", "RoPE", "RoPEFreqs",
	"RoPEOffsets", "RotateNormedRows", "RotateRows", "Scatter", "ScatterAdd", "ScatterAddAxis", "SliceDynamic",
	"SliceUpdateDynamic", "StateScan", "StepSizes", "StreamWeights", "TakeAlongAxis", "UnitGates", "UnpackRows", "WKVScan",
	"allGather", "allSum", "attend", "attendChosen", "broadcastFrom", "chooseKeys", "compressRows", "received", "sent"}

// indexing operations do not check indices, which may not be computed yet. The test uses only 0.
var indexing = []string{"Take", "TakeAlongAxis", "PutAlongAxis", "ScatterAddAxis", "Gather", "Scatter", "ScatterAdd",
	"ClampedSwiGLU", "CombineRows", "GatedExperts", "GatherMM",
	"GatherQMM", "SliceDynamic", "SliceUpdateDynamic"}

// keyed operations take a random key.
var keyed = []string{"Categorical", "RandomBits", "RandomNormal", "RandomSplit", "RandomUniform"}

// unchecked reports whether an operation does not check its arguments: it is not exported, and Slice checks for it.
func unchecked(name string) bool { return name == "slice" || name == "sliceUpdate" }

type random struct{ *rand.Rand }

func (r random) try(t *testing.T, name string, arguments func(*mlx.Thread) []reflect.Value) error {
	t.Helper()
	err := mlxtest.Try(t, func(e *mlx.Thread) {
		defer smallBudget(e, 1<<20)()
		in := arguments(e)
		if testing.Verbose() {
			fmt.Fprintln(os.Stderr, text(name, in))
		}
		mlx.Eval(call(name, in)...)
	})
	if e := (*mlx.Error)(nil); err != nil && !errors.As(err, &e) {
		t.Errorf("%s: %v is not an *mlx.Error", name, err)
	}
	return err
}

func text(name string, in []reflect.Value) string {
	var words []string
	for _, v := range in {
		if _, ok := v.Interface().(*mlx.Thread); !ok {
			words = append(words, fmt.Sprint(v.Interface()))
		}
	}
	return name + "(" + strings.Join(words, ", ") + ")"
}

// smallBudget leaves the given number of bytes for arrays. The returned function restores the budget.
func smallBudget(e *mlx.Thread, bytes int64) func() {
	m := e.Memory()
	e.SetBudget(m.Active + bytes)
	return func() { e.SetBudget(m.Budget) }
}

// arguments generates arguments for an operation.
func (r random) arguments(e *mlx.Thread, name string) (in []reflect.Value) {
	kind := reflect.TypeOf(mlx.OpFuncs[name])
	like := r.array(e, name, nil)
	length := pick(r, r.IntN(4), like.Rank()) // of most lists
	for i := range kind.NumIn() {
		in = append(in, r.argument(e, name, kind.In(i), like, length))
	}
	return in
}

func (r random) argument(e *mlx.Thread, name string, kind reflect.Type, like *mlx.Array, length int) reflect.Value {
	var v any
	switch kind {
	case reflect.TypeFor[*mlx.Thread]():
		v = e
	case reflect.TypeFor[*mlx.Array]():
		v = r.array(e, name, like)
	case reflect.TypeFor[[]*mlx.Array]():
		list := make([]*mlx.Array, r.IntN(4))
		for i := range list {
			list[i] = r.array(e, name, like)
		}
		v = list
	case reflect.TypeFor[int]():
		v = r.int()
	case reflect.TypeFor[[]int]():
		if r.IntN(20) == 0 {
			length = r.IntN(100)
		}
		list := make([]int, length)
		for i := range list {
			list[i] = r.int()
		}
		v = list
	case reflect.TypeFor[uint64]():
		v = r.Uint64()
	case reflect.TypeFor[bool]():
		v = r.IntN(2) == 0
	case reflect.TypeFor[float64]():
		v = pick(r, 0, 1, 1, 2, -1, 0.5, -1e30, 1e300, math.Inf(1), math.NaN())
	case reflect.TypeFor[mlx.DType]():
		v = mlx.DType(r.IntN(15) - 1)
	case reflect.TypeFor[mlx.QuantMode]():
		v = mlx.QuantMode(r.IntN(6) - 1)
	default:
		panic(kind)
	}
	return reflect.ValueOf(v)
}

// damage replaces one or two arguments: arrays by arrays of another type or a slightly different shape, others by any
// value.
func (r random) damage(e *mlx.Thread, name string, in []reflect.Value) []reflect.Value {
	for range 1 + r.IntN(2) {
		i := r.IntN(len(in))
		a, ok := in[i].Interface().(*mlx.Array)
		if !ok || a == nil {
			in[i] = r.argument(e, name, in[i].Type(), r.array(e, name, nil), 1+r.IntN(3))
			continue
		}
		shape, dtype := slices.Clone(a.Shape()), a.DType()
		axis := r.IntN(len(shape) + 1)
		switch change := r.IntN(6); {
		case change == 0:
			dtype = mlx.DType(r.IntN(13))
		case change == 1 || axis == len(shape):
			shape = slices.Insert(shape, axis, 1+r.IntN(2))
		case change == 2:
			shape = slices.Delete(shape, axis, axis+1)
		case change == 3:
			shape[axis] = 0
		default:
			shape[axis] = pick(r, 1, shape[axis]+1, 2*shape[axis], shape[axis]/2)
		}
		in[i] = reflect.ValueOf(r.filled(e, name, dtype, shape))
	}
	if slices.Contains(indexing, name) {
		for i, v := range in {
			if a, ok := v.Interface().(*mlx.Array); ok && a != nil && !a.DType().Float() {
				in[i] = reflect.ValueOf(mlx.ZerosLike(a))
			}
			if list, ok := v.Interface().([]*mlx.Array); ok {
				for j, a := range list {
					if a != nil {
						list[j] = mlx.ZerosLike(a)
					}
				}
			}
		}
	}
	return in
}

func (r random) int() int {
	if r.IntN(12) > 0 {
		return pick(r, -2, -1, -1, 0, 0, 1, 1, 1, 2, 2, 3, 4, 32)
	}
	return pick(r, -3, 5, 8, 9, 64, 1000, 1<<20, math.MaxInt32, math.MinInt32, math.MaxInt32+1, 1<<40, math.MaxInt,
		math.MinInt)
}

// array returns an array that often has the type and shape of like. It may be nil.
func (r random) array(e *mlx.Thread, name string, like *mlx.Array) *mlx.Array {
	if like != nil && r.IntN(15) == 0 {
		return nil
	}
	if like != nil && slices.Contains(keyed, name) && r.IntN(2) == 0 {
		return mlx.RandomKey(e, r.Uint64())
	}
	dtype := pick(r, mlx.Float32, mlx.Float32, mlx.BFloat16, mlx.Float16, mlx.Int32, mlx.Uint32, mlx.Uint8,
		mlx.DType(r.IntN(13)))
	shape := make([]int, pick(r, 0, 1, 1, 2, 2, 2, 3, 3, 4, 8))
	for i := range shape {
		shape[i] = pick(r, 1, 1, 2, 2, 3, 4, 5)
		if r.IntN(15) == 0 {
			shape[i] = pick(r, 0, 32, 64)
		}
		if len(shape) == 8 {
			shape[i] = pick(r, 1, 2)
		}
	}
	if like != nil && r.IntN(2) == 0 {
		dtype = like.DType()
	}
	if like != nil && r.IntN(2) == 0 {
		shape = like.Shape()
	}
	a := r.filled(e, name, dtype, shape)
	if len(shape) > 1 && r.IntN(4) == 0 {
		return mlx.Transpose(a)
	}
	return a
}

// filled returns an array of zeros, of random bits, or of edge cases of integers: 0, 1, -1, minimum and maximum.
func (r random) filled(e *mlx.Thread, name string, d mlx.DType, shape []int) *mlx.Array {
	if slices.Contains(indexing, name) && !d.Float() {
		return mlx.Zeros(e, d, shape...)
	}
	size := 1
	for _, n := range shape {
		size *= n
	}
	kind, least := r.IntN(3), uint64(1)<<(8*d.Size()-1)
	var data, element []byte
	for range size {
		var v uint64
		switch kind {
		case 1:
			v = r.Uint64()
		case 2:
			v = pick(r, 0, 1, math.MaxUint64, least, least-1)
		}
		if d == mlx.Bool {
			v &= 1
		}
		element = binary.LittleEndian.AppendUint64(element[:0], v)
		data = append(data, element[:d.Size()]...)
	}
	return mlx.FromBytes(e, data, d, shape...)
}

func pick[T any](r random, from ...T) T { return from[r.IntN(len(from))] }
