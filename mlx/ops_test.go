package mlx_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// rules lists the accepted reasons for differences from the goldens, which come from the official Python package on an
// x86-64 CPU. The binding uses the same library, so all other results must be equal bit for bit.
var rules = map[string]struct {
	run func(check) error
	why string
}{
	"":       {sameBits, "the same library gives the same bits"},
	"libm":   {near(4, false), "the C library, the compiler's vector width and the GPU's functions round differently"},
	"sum":    {near(16, true), "the vector width, and the processor that the BLAS finds, decide the order of additions"},
	"once":   {near(8, true), "our operation computes in float32 and rounds once, MLX's rounds after each step"},
	"steps":  {within(0x1p-7), "MLX rounds updates of a float32 state to the type of the inputs"},
	"order":  {partition, "a partition fixes the position of the kth element only"},
	"format": {packed, "GPUs divide and round differently from the CPU when they pack weights"},
}

// check is one result of one case.
type check struct {
	golden
	gpu  bool
	in   []*mlx.Array
	got  *mlx.Array
	want values
}

func TestOps(t *testing.T) {
	thread := mlxtest.Open(t)
	g := openGoldens(t)
	for _, c := range g.cases {
		if thread.Info().GPU && slices.ContainsFunc(c.Out, func(n string) bool { return g.values(n).dtype == mlx.Float64 }) {
			continue // GPUs do not support float64
		}
		mlxtest.Do(t, func(e *mlx.Thread) { g.compare(t, e, c) })
	}
}

// The kernels of every instruction set give the goldens, so that a new one is tested on each.
func TestOpsOnEveryISA(t *testing.T) {
	g := openGoldens(t)
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		for _, c := range g.cases {
			e.Scope(func() { g.compare(t, e, c) })
		}
	})
}

// compare runs a case.
func (g goldens) compare(t *testing.T, e *mlx.Thread, c golden) {
	t.Helper()
	rule, ok := rules[c.Relax]
	if !ok {
		t.Fatalf("%v: no rule %q", c, c.Relax)
	}
	got := call(c.Op, g.arguments(e, c))
	if len(got) != len(c.Out) {
		t.Errorf("%v: %d results, want %d", c, len(got), len(c.Out))
		return
	}
	for i, a := range got {
		want := g.values(c.Out[i])
		if a.DType() != want.dtype || !slices.Equal(a.Shape(), want.shape) {
			t.Errorf("%v: result %d is %v, want %v%v", c, i, a, want.dtype, want.shape)
		} else if err := rule.run(check{c, e.Info().GPU, g.inputs(e, c), a, want}); err != nil {
			t.Errorf("%v: result %d: %v", c, i, err)
		}
	}
}

// Every operation in ops.txt needs a case in a script of testdata/gen/mlx.
func TestOpsHaveGoldens(t *testing.T) {
	cases := map[string]int{}
	for _, c := range openGoldens(t).cases {
		cases[c.Op]++
	}
	// They need ranks: TestLocalGroup, TestTableKernels.
	ofRanks := []string{"OwnPackedTableRows", "OwnTableRows", "allGather", "allSum", "broadcastFrom", "received", "sent"}
	for name := range mlx.OpFuncs {
		if cases[name] == 0 && !slices.Contains(ofRanks, name) {
			t.Errorf("%s has no case in testdata/ops.json", name)
		}
	}
}

func (g goldens) inputs(e *mlx.Thread, c golden) (list []*mlx.Array) {
	for _, a := range c.Args {
		if len(a) > 1 && a[0] == '"' && a[1] == 't' {
			list = append(list, g.array(e, parse[string](a)))
		}
	}
	return list
}

func sameBits(k check) error {
	b, want := k.got.ToBytes(), k.want
	if bytes.Equal(b, want.bytes) {
		return nil
	}
	g, w := mlxtest.Numbers(b, want.dtype), mlxtest.Numbers(want.bytes, want.dtype)
	size := want.dtype.Size()
	for i := range w {
		if math.IsNaN(g[i]) && math.IsNaN(w[i]) {
			continue // with any sign and payload
		}
		if p := i * size; !bytes.Equal(b[p:p+size], want.bytes[p:p+size]) {
			return fmt.Errorf("element %d is %v, want %v", i, g[i], w[i])
		}
	}
	return nil
}

// near allows an error of some units in the last place: of the element, or of the largest element, because cancelling
// terms leave the error of the terms.
func near(units float64, ofLargest bool) func(check) error {
	return func(k check) error {
		g, w := mlxtest.Numbers(k.got.ToBytes(), k.want.dtype), mlxtest.Numbers(k.want.bytes, k.want.dtype)
		unit := map[mlx.DType]float64{mlx.Float32: 0x1p-23, mlx.Float16: 0x1p-10, mlx.BFloat16: 0x1p-7,
			mlx.Float64: 0x1p-52}[k.want.dtype]
		if k.gpu {
			unit *= 8
		}
		largest := 0.0
		for _, v := range w {
			if !math.IsInf(v, 0) && !math.IsNaN(v) {
				largest = max(largest, math.Abs(v))
			}
		}
		for i := range w {
			scale := math.Abs(w[i])
			if ofLargest {
				scale = largest
			}
			if !(g[i] == w[i] || math.IsNaN(g[i]) && math.IsNaN(w[i]) || math.Abs(g[i]-w[i]) <= units*unit*scale) {
				return fmt.Errorf("element %d is %v, want %v", i, g[i], w[i])
			}
		}
		return nil
	}
}

// within allows an error of a share of the largest element, for any type.
func within(share float64) func(check) error {
	return func(k check) error {
		g, w := mlxtest.Numbers(k.got.ToBytes(), k.want.dtype), mlxtest.Numbers(k.want.bytes, k.want.dtype)
		largest := 0.0
		for _, v := range w {
			largest = max(largest, math.Abs(v))
		}
		for i := range w {
			if !(math.Abs(g[i]-w[i]) <= share*largest) {
				return fmt.Errorf("element %d is %v, want %v", i, g[i], w[i])
			}
		}
		return nil
	}
}

func packed(k check) error {
	if k.gpu {
		return nil // type and shape are compared already
	}
	return sameBits(k)
}

// partition compares the rows of Partition, ArgPartition and TopK as sets, and checks the order relative to the kth
// element.
func partition(k check) error {
	row := k.in[0].Dim(-1)
	data := mlxtest.Numbers(k.in[0].ToBytes(), k.in[0].DType())
	got, want := mlxtest.Numbers(k.got.ToBytes(), k.want.dtype), mlxtest.Numbers(k.want.bytes, k.want.dtype)
	n := k.want.shape[len(k.want.shape)-1]
	kth := parse[int](k.Args[1])
	if kth < 0 {
		kth += row
	}
	for r := 0; r*n < len(want); r++ {
		g, w := got[r*n:(r+1)*n], want[r*n:(r+1)*n]
		if k.Op == "ArgPartition" {
			for i := range g {
				g[i], w[i] = data[r*row+int(g[i])], data[r*row+int(w[i])]
			}
		}
		if !slices.Equal(slices.Sorted(slices.Values(g)), slices.Sorted(slices.Values(w))) {
			return fmt.Errorf("row %d has %v, want %v in any order", r, g, w)
		}
		if k.Op != "TopK" && (kth > 0 && slices.Max(g[:kth]) > g[kth] || slices.Min(g[kth:]) < g[kth]) {
			return fmt.Errorf("row %d is %v: not a partition by element %d", r, g, kth)
		}
	}
	return nil
}
