package kernels_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// referenceAttention computes the attention of one query vector by definition. mask returns the masked score of key j.
func referenceAttention[T float32 | float64](q []T, keys, values [][]T, scale, softcap T, mask func(j int, score T) T,
	sink *T) []T {
	exp := func(x T) T { return T(math.Exp(float64(x))) }
	scores := make([]T, len(keys))
	top := T(math.Inf(-1))
	for j, k := range keys {
		var dot T
		for d := range q {
			dot += q[d] * k[d]
		}
		dot *= scale
		if softcap > 0 {
			dot = softcap * T(math.Tanh(float64(dot/softcap)))
		}
		scores[j] = mask(j, dot)
		if scores[j] > top || math.IsNaN(float64(scores[j])) {
			top = scores[j]
		}
	}
	var total T
	if sink != nil {
		top = max(top, *sink)
		total = exp(*sink - top)
	}
	out := make([]T, len(values[0]))
	for j, v := range values {
		w := exp(scores[j] - top)
		total += w
		for d := range out {
			out[d] += w * v[d]
		}
	}
	for d := range out {
		out[d] /= total
	}
	return out
}

func convert[T, F float32 | float64](from []F) []T {
	to := make([]T, len(from))
	for i, v := range from {
		to[i] = T(v)
	}
	return to
}

// vectorsOf splits a list into vectors of the given size.
func vectorsOf[T any](list []T, size int) [][]T {
	var rows [][]T
	for i := 0; i+size <= len(list); i += size {
		rows = append(rows, list[i:i+size])
	}
	return rows
}

// elements returns the elements of an array as float64.
func elements(x *mlx.Array) []float64 { return mlxtest.Numbers(x.ToBytes(), x.DType()) }

type attentionCase struct {
	batch, heads, kvHeads, rows, keys, dim, valueDim int

	causal, sinks bool
	mask          string // bool, add, none
	spread        float64
	fast          bool // the weights of values may be rounded to bfloat16
}

// exact computes the case element by element, in float64 or in float32.
func exact[T float32 | float64](c attentionCase, q, k, v, mask, sinks []float64) []float64 {
	vectors := vectorsOf(convert[T](q), c.dim)
	keys, values := vectorsOf(convert[T](k), c.dim), vectorsOf(convert[T](v), c.valueDim)
	var out []float64
	for i, vector := range vectors {
		row, head, b := i%c.rows, i/c.rows%c.heads, i/c.rows/c.heads
		first := (b*c.kvHeads + head/(c.heads/c.kvHeads)) * c.keys
		seen := c.keys
		if c.causal {
			seen = c.keys - c.rows + row + 1
		}
		var sink *T
		if sinks != nil {
			s := T(sinks[head])
			sink = &s
		}
		y := referenceAttention(vector, keys[first:first+seen], values[first:first+seen], T(1/math.Sqrt(float64(c.dim))), 0,
			func(j int, score T) T {
				switch at := row*c.keys + j; {
				case c.mask == "add":
					return score + T(mask[at])
				case c.mask == "bool" && mask[at] == 0:
					return -math.MaxFloat32
				}
				return score
			}, sink)
		out = append(out, convert[float64](y)...)
	}
	return out
}

func (c attentionCase) run(t *testing.T, e *mlx.Thread, d mlx.DType) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, uint64(c.dim*c.keys)))
	random := func(shape ...int) *mlx.Array {
		n := 1
		for _, s := range shape {
			n *= s
		}
		list := make([]float32, n)
		for i := range list {
			list[i] = float32(r.NormFloat64())
		}
		return mlx.AsType(mlx.FromSlice(e, list, shape...), d)
	}
	q := random(c.batch, c.heads, c.rows, c.dim)
	if c.spread != 0 {
		q = mlx.MultiplyScalar(q, c.spread)
	}
	k, v := random(c.batch, c.kvHeads, c.keys, c.dim), random(c.batch, c.kvHeads, c.keys, c.valueDim)
	var mask, sinks *mlx.Array
	var maskValues, sinkValues []float64
	switch c.mask {
	case "add":
		mask = random(c.rows, c.keys)
		maskValues = elements(mask)
	case "bool":
		mask = mlx.Greater(random(1, 1, c.rows, c.keys), mlx.Zeros(e, d))
		maskValues = elements(mlx.AsType(mask, mlx.Float32))
	}
	if c.sinks {
		sinks = random(c.heads)
		sinkValues = elements(sinks)
	}
	attend := func() []*mlx.Array {
		return []*mlx.Array{mlx.Attention(q, k, v, mask, sinks, 1/math.Sqrt(float64(c.dim)), c.causal)}
	}
	sameOnAllThreads(t, e, fmt.Sprint(c), attend)
	got := elements(attend()[0])
	qs, ks, vs := elements(q), elements(k), elements(v)
	want := exact[float64](c, qs, ks, vs, maskValues, sinkValues)
	plain := exact[float32](c, qs, ks, vs, maskValues, sinkValues)
	least := 0x1p-23
	if c.fast {
		least = roundedWeights(vs) / 2
	}
	compareToPlain(t, fmt.Sprintf("%v %+v", d, c), got, want, plain, least, unitOf(d)/2)
}

// roundedWeights bounds the error of a weighted sum of values whose weights are rounded to bfloat16.
func roundedWeights(values []float64) float64 {
	return 0x1p-8 * max(slices.Max(values), -slices.Min(values))
}

// compareToPlain allows twice the largest error of plain, a straightforward float32 computation, or at least twice
// least, plus the rounding of the result.
func compareToPlain(t *testing.T, what string, got, want, plain []float64, least, unit float64) {
	t.Helper()
	worst := least
	for i := range want {
		worst = max(worst, math.Abs(plain[i]-want[i]))
	}
	for i := range want {
		if err := math.Abs(got[i] - want[i]); !(err <= 2*worst+unit*math.Abs(want[i])*1.01) {
			t.Errorf("%s: element %d is %v, want %v: error %.3g, in plain float32 at most %.3g",
				what, i, got[i], want[i], err, worst)
			return
		}
	}
}

func TestAttentionKernels(t *testing.T) {
	cases := []attentionCase{
		{batch: 1, heads: 1, kvHeads: 1, rows: 1, keys: 1, dim: 16, valueDim: 16, causal: true},
		{batch: 2, heads: 6, kvHeads: 2, rows: 1, keys: 131, dim: 64, valueDim: 64},
		{batch: 1, heads: 4, kvHeads: 1, rows: 1, keys: 1000, dim: 128, valueDim: 64, causal: true, sinks: true},
		{batch: 1, heads: 3, kvHeads: 3, rows: 2, keys: 77, dim: 96, valueDim: 128, causal: true},
		{batch: 1, heads: 8, kvHeads: 2, rows: 4, keys: 413, dim: 64, valueDim: 64, causal: true},
		{batch: 1, heads: 2, kvHeads: 1, rows: 7, keys: 45, dim: 64, valueDim: 32, mask: "bool"},
		{batch: 2, heads: 2, kvHeads: 2, rows: 6, keys: 45, dim: 32, valueDim: 32, mask: "add", sinks: true},
		{batch: 1, heads: 5, kvHeads: 1, rows: 33, keys: 50, dim: 19, valueDim: 7, causal: true},
		{batch: 1, heads: 14, kvHeads: 2, rows: 61, keys: 211, dim: 80, valueDim: 80, causal: true, sinks: true},
		{batch: 2, heads: 4, kvHeads: 2, rows: 37, keys: 101, dim: 24, valueDim: 40, mask: "add"},
		{batch: 1, heads: 4, kvHeads: 4, rows: 37, keys: 101, dim: 64, valueDim: 64, mask: "bool", sinks: true},
		{batch: 1, heads: 20, kvHeads: 1, rows: 3, keys: 90, dim: 576, valueDim: 512, causal: true},
		{batch: 1, heads: 2, kvHeads: 1, rows: 20, keys: 70, dim: 512, valueDim: 512, causal: true},
		{batch: 1, heads: 2, kvHeads: 1, rows: 40, keys: 300, dim: 64, valueDim: 64, causal: true, spread: 30},
		{batch: 1, heads: 2, kvHeads: 1, rows: 2, keys: 300, dim: 64, valueDim: 64, causal: true, spread: 300},
		{batch: 1, heads: 2, kvHeads: 2, rows: 9, keys: 40, dim: 64, valueDim: 64, spread: 1e-4},
	}
	onEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		for _, c := range cases {
			for _, d := range []mlx.DType{mlx.Float32, mlx.BFloat16, mlx.Float16} {
				e.Scope(func() { c.run(t, e, d) })
			}
			withFastMath(t, e, func() {
				c.fast = true
				c.run(t, e, mlx.BFloat16)
			})
		}
	})
}

// withFastMath runs f in a scope with fast arithmetic.
func withFastMath(t *testing.T, e *mlx.Thread, f func()) {
	t.Helper()
	now := e.CPU()
	set := func(fast bool) {
		if err := e.SetCPU(mlx.CPUOptions{Threads: now.Threads, ISA: now.ISA, Fast: fast}); err != nil {
			t.Error(err)
		}
	}
	set(true)
	defer set(now.Fast)
	e.Scope(f)
}

// NaN values and fully masked rows affect only the rows that they belong to.
func TestAttentionOddValues(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	onEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		for _, rows := range []int{3, 40} {
			const dim, keys = 64, 50
			q, k := slices.Repeat([]float32{0.1}, rows*dim), slices.Repeat([]float32{0.1}, keys*dim)
			q[dim+5] = nan // row 1
			v := make([]float32, keys*dim)
			for i := range v {
				v[i] = float32(i / dim)
			}
			add := make([]float32, rows*keys)
			for j := range keys {
				add[2*keys+j] = -inf // row 2 is fully masked
			}
			array := func(list []float32, shape ...int) *mlx.Array { return mlx.FromSlice(e, list, shape...) }
			qs, ks, vs := array(q, 1, 1, rows, dim), array(k, 1, 1, keys, dim), array(v, 1, 1, keys, dim)
			y := mlx.Attention(qs, ks, vs, array(add, rows, keys), nil, 1, false).Float32s()
			bools := mlx.Equal(array(add, rows, keys), mlx.Zeros(e, mlx.Float32))
			z := mlx.Attention(qs, ks, vs, bools, nil, 1, false).Float32s()
			for row := range rows {
				a, b := float64(y[row*dim]), float64(z[row*dim])
				average := math.Abs(a-24.5) < 1e-4
				if want := row != 1 && row != 2; average != want || math.IsNaN(a) == want {
					t.Errorf("%d rows, row %d with an additive mask: %v", rows, row, a)
				}
				// As in MLX, a row that a bool mask hides completely attends to all keys equally.
				if average := math.Abs(b-24.5) < 1e-4; average != (row != 1) {
					t.Errorf("%d rows, row %d with a bool mask: %v", rows, row, b)
				}
			}
		}
	})
}

// stored is a sequence in a store, and a copy of its keys and values by position.
type stored struct {
	store mlx.Store
	k, v  [][]float64 // [position][heads*dim]
}

type attendCase struct {
	heads, kvHeads, dim, valueDim int

	window, capacity int // capacity > 0 means a ring
	softcap          float64
	sinks, latent    bool
	bits             int // of packed rows, or 0
	fast             bool
	steps            [][]int // rows per sequence, for each step
}

// queryCount returns how many of a sequence's rows of a step are queries: all of them in the first steps, later also
// only the last ones.
func queryCount(step, sequence, rows int) int {
	switch (step + sequence) % 4 {
	case 2:
		return 1
	case 3:
		return (rows + 1) / 2
	}
	return rows
}

// lastRows takes the last counts[i] rows of each run of runs[i] rows of x.
func lastRows(x *mlx.Array, runs, counts []int) *mlx.Array {
	var rows []int32
	end := 0
	for i, n := range runs {
		end += n
		for r := end - counts[i]; r < end; r++ {
			rows = append(rows, int32(r))
		}
	}
	return mlx.Take(x, mlx.FromSlice(x.Thread(), rows), 0)
}

// run attends to batches of sequences, step by step, and compares each sequence with its reference.
func (c attendCase) run(t *testing.T, e *mlx.Thread, d mlx.DType) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, uint64(c.dim)))
	random := func(shape ...int) *mlx.Array {
		n := 1
		for _, s := range shape {
			n *= s
		}
		list := make([]float32, n)
		for i := range list {
			list[i] = float32(r.NormFloat64())
		}
		return mlx.AsType(mlx.FromSlice(e, list, shape...), d)
	}
	capacity := c.capacity
	if capacity == 0 {
		for _, step := range c.steps {
			capacity += slices.Max(step)
		}
	}
	sequences := make([]stored, len(c.steps[0]))
	room := func(dim int) *mlx.Array {
		if c.bits > 0 {
			return mlx.Zeros(e, mlx.Uint8, 1, c.kvHeads, capacity, mlx.PackedBytes(dim, c.bits))
		}
		return mlx.Zeros(e, d, 1, c.kvHeads, capacity, dim)
	}
	for i := range sequences {
		sequences[i].store = mlx.Store{K: room(c.dim), Bits: c.bits}
		if !c.latent {
			sequences[i].store.V = room(c.valueDim)
		}
	}
	kept := func(x *mlx.Array) []float64 {
		if c.bits > 0 {
			x = mlx.UnpackRows(mlx.PackRows(x, c.bits), c.bits, mlx.Float32)
		}
		return elements(x)
	}
	o := mlx.AttendOptions{Scale: 0.2, SoftCap: c.softcap, Window: c.window, Ring: c.capacity > 0}
	var sinks []float64
	if c.sinks {
		o.Sinks = random(c.heads)
		sinks = elements(o.Sinks)
	}
	if c.latent {
		o.Values = c.valueDim
	}
	for n, step := range c.steps {
		var segments []mlx.AttendSegment
		var owners, runs, queryCounts []int // per segment: its sequence, its rows, and how many of them are queries
		rows := 0
		for i, count := range step {
			if count > 0 {
				n := queryCount(n, i, count)
				segments = append(segments, mlx.AttendSegment{Store: sequences[i].store, Rows: n,
					Position: len(sequences[i].k) + count - n, Stored: count})
				owners, runs, queryCounts = append(owners, i), append(runs, count), append(queryCounts, n)
				rows += count
			}
		}
		q, k, v := random(rows, c.heads, c.dim), random(rows, c.kvHeads, c.dim), random(rows, c.kvHeads, c.valueDim)
		if c.latent {
			v = nil
		}
		out, stores := mlx.Attend(lastRows(q, runs, queryCounts), k, v, segments, o)
		got := vectorsOf(elements(out), c.heads*c.valueDim)
		qs, ks := vectorsOf(elements(q), c.heads*c.dim), vectorsOf(kept(k), c.kvHeads*c.dim)
		vs := ks
		if !c.latent {
			vs = vectorsOf(kept(v), c.kvHeads*c.valueDim)
		}
		row := 0
		for i := range segments {
			own := &sequences[owners[i]]
			own.store = stores[i]
			for r := range runs[i] {
				own.k, own.v = append(own.k, ks[row]), append(own.v, vs[row])
				if r >= runs[i]-queryCounts[i] {
					c.check(t, fmt.Sprintf("%v %+v: step %d, sequence %d, row %d", d, c, n, owners[i], row), own, qs[row], got[0],
						sinks, unitOf(d)/2)
					got = got[1:]
				}
				row++
			}
		}
		if len(got) > 0 {
			t.Errorf("%v %+v: step %d returns %d extra rows", d, c, n, len(got))
		}
	}
}

func (c attendCase) check(t *testing.T, what string, s *stored, q, got, sinks []float64, unit float64) {
	t.Helper()
	first := 0
	if c.window > 0 {
		first = max(0, len(s.k)-c.window)
	}
	for head, vector := range vectorsOf(q, c.dim) {
		var keys, values [][]float64
		kv := head / (c.heads / c.kvHeads)
		size := len(s.v[0]) / c.kvHeads
		for p := first; p < len(s.k); p++ {
			keys = append(keys, s.k[p][kv*c.dim:(kv+1)*c.dim])
			values = append(values, s.v[p][kv*size:kv*size+c.valueDim])
		}
		var sink *float64
		if sinks != nil {
			sink = &sinks[head]
		}
		want := referenceAttention(vector, keys, values, 0.2, c.softcap, func(_ int, score float64) float64 { return score },
			sink)
		off := 3e-6
		if c.fast {
			off += roundedWeights(slices.Concat(values...))
		}
		for i, w := range want {
			if g := got[head*c.valueDim+i]; !(math.Abs(g-w) <= off+unit*math.Abs(w)*1.01) {
				t.Errorf("%s, head %d: element %d is %v, want %v", what, head, i, g, w)
				return
			}
		}
	}
}

func TestAttend(t *testing.T) {
	steps := [][]int{{5, 0, 1}, {1, 1, 1}, {9, 70, 3}, {1, 1, 1}, {8, 0, 2}, {140, 4, 1}, {1, 1, 0}, {2, 1, 1}}
	cases := []attendCase{
		{heads: 4, kvHeads: 2, dim: 32, valueDim: 32, steps: steps},
		{heads: 3, kvHeads: 3, dim: 64, valueDim: 32, steps: steps, sinks: true, softcap: 3},
		{heads: 5, kvHeads: 1, dim: 20, valueDim: 12, steps: steps, window: 6},
		{heads: 4, kvHeads: 2, dim: 64, valueDim: 64, steps: steps, window: 11, capacity: 11},
		{heads: 4, kvHeads: 2, dim: 64, valueDim: 64, steps: steps, window: 11, capacity: 23, softcap: 5},
		{heads: 6, kvHeads: 1, dim: 64, valueDim: 32, steps: steps, latent: true},
		{heads: 2, kvHeads: 1, dim: 64, valueDim: 32, steps: steps, latent: true, window: 4, capacity: 5, sinks: true},
		{heads: 4, kvHeads: 2, dim: 32, valueDim: 32, steps: steps, bits: 8},
		{heads: 8, kvHeads: 1, dim: 96, valueDim: 64, steps: steps, bits: 4, sinks: true, softcap: 3},
		{heads: 5, kvHeads: 1, dim: 20, valueDim: 12, steps: steps, bits: 4, window: 6},
		{heads: 3, kvHeads: 3, dim: 80, valueDim: 40, steps: steps, bits: 8, window: 11, capacity: 11},
		{heads: 4, kvHeads: 2, dim: 64, valueDim: 64, steps: steps, bits: 4, window: 11, capacity: 23, softcap: 5},
		{heads: 6, kvHeads: 1, dim: 64, valueDim: 32, steps: steps, bits: 8, latent: true},
		{heads: 2, kvHeads: 1, dim: 96, valueDim: 64, steps: steps, bits: 4, latent: true, window: 4, capacity: 5,
			sinks: true},
	}
	onEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		for _, c := range cases {
			for _, d := range []mlx.DType{mlx.Float32, mlx.BFloat16, mlx.Float16} {
				e.Scope(func() { c.run(t, e, d) })
			}
			withFastMath(t, e, func() {
				c.fast = true
				c.run(t, e, mlx.BFloat16)
			})
		}
	})
}

// The composition of MLX's operations, which other devices use. On a CPU it runs for float64, which has no kernel.
func TestAttendComposed(t *testing.T) {
	steps := [][]int{{5, 0, 1}, {1, 1, 1}, {9, 30, 3}, {1, 1, 1}, {8, 0, 2}}
	mlxtest.Do(t, func(e *mlx.Thread) {
		if e.Info().GPU {
			t.Skip("GPUs have no float64; there TestAttend runs the composition")
		}
		key := mlx.RandomKey(e, 4)
		random := func(shape ...int) *mlx.Array {
			keys := mlx.RandomSplit(key, 2)
			key = mlx.Reshape(mlx.Slice(keys, mlx.At(0), mlx.All()), 2)
			return mlx.RandomNormal(key, mlx.Float32, shape...)
		}
		for _, o := range []mlx.AttendOptions{
			{Scale: 0.2}, {Scale: 0.2, SoftCap: 2, Sinks: random(4)}, {Scale: 0.2, Window: 4, Sinks: random(4)},
			{Scale: 0.2, Window: 4, Ring: true}, {Scale: 0.2, Window: 3, Ring: true, SoftCap: 3, Values: 5},
			{Scale: 0.2, Values: 8},
		} {
			for _, bits := range []int{0, 8, 4} {
				attendBothWays(t, e, o, bits, random, steps)
			}
		}
	})
}

// attendBothWays compares the kernels with MLX's operations, which run for float64 queries.
func attendBothWays(t *testing.T, e *mlx.Thread, o mlx.AttendOptions, bits int, random func(shape ...int) *mlx.Array,
	steps [][]int) {
	capacity, valueDim := 64, 12
	if o.Ring {
		capacity = 5
	}
	if o.Values > 0 {
		valueDim = o.Values
	}
	var stores [2][3]mlx.Store
	for i, d := range []mlx.DType{mlx.Float32, mlx.Float64} {
		for j := range stores[i] {
			room := func(dim int) *mlx.Array {
				if bits > 0 {
					return mlx.Zeros(e, mlx.Uint8, 1, 2, capacity, mlx.PackedBytes(dim, bits))
				}
				return mlx.Zeros(e, d, 1, 2, capacity, dim)
			}
			stores[i][j] = mlx.Store{K: room(8), Bits: bits}
			if o.Values == 0 {
				stores[i][j].V = room(valueDim)
			}
		}
	}
	var seen [3]int
	for n, step := range steps {
		rows := step[0] + step[1] + step[2]
		q, k, v := random(rows, 4, 8), random(rows, 2, 8), random(rows, 2, valueDim)
		if o.Values > 0 {
			v = nil
		}
		var outs [2][]float64
		for i, d := range []mlx.DType{mlx.Float32, mlx.Float64} {
			var segments []mlx.AttendSegment
			var runs, queryCounts []int
			for j, count := range step {
				if count > 0 {
					rows := queryCount(n, j, count)
					segments = append(segments, mlx.AttendSegment{Store: stores[i][j], Rows: rows, Position: seen[j] + count - rows,
						Stored: count})
					runs, queryCounts = append(runs, count), append(queryCounts, rows)
				}
			}
			queries := mlx.AsType(lastRows(q, runs, queryCounts), d)
			out, now := mlx.Attend(queries, k, v, segments, o)
			outs[i] = elements(out)
			for j, count := range step {
				if count > 0 {
					stores[i][j], now = now[0], now[1:]
				}
			}
			if step[1] == 0 || o.Ring {
				continue // a ring has overwritten what the first rows saw
			}
			var again []mlx.AttendSegment
			for j, s := range segments {
				again = append(again, mlx.AttendSegment{Store: stores[i][j], Rows: s.Rows, Position: s.Position,
					Seen: s.Position + s.Rows})
			}
			stored, _ := mlx.AttendStored(queries, again, o)
			if !bytes.Equal(stored.ToBytes(), out.ToBytes()) {
				t.Errorf("%+v, %d bits, %v: AttendStored differs from Attend", o, bits, d)
			}
		}
		for j, count := range step {
			seen[j] += count
			if a, b := stores[0][j], stores[1][j]; bits > 0 && !bytes.Equal(a.K.ToBytes(), b.K.ToBytes()) {
				t.Errorf("%+v, %d bits, step %d: the kernels pack keys differently than MLX", o, bits, n)
			} else if bits > 0 && a.V != nil && !bytes.Equal(a.V.ToBytes(), b.V.ToBytes()) {
				t.Errorf("%+v, %d bits, step %d: the kernels pack values differently than MLX", o, bits, n)
			}
		}
		for j := range outs[0] {
			if d := outs[0][j] - outs[1][j]; !(math.Abs(d) < 2e-5) {
				t.Errorf("%+v, %d bits, step %d: element %d is %v by the kernels, %v by MLX",
					o, bits, n, j, outs[0][j], outs[1][j])
			}
		}
	}
}

// Writes happen after the readers of the older version, whichever is evaluated first, and reuse its memory.
func TestAttendOrder(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		const window = 8
		rows := func(n int, value float64) *mlx.Array { return mlx.Full(e, value, mlx.Float32, n, 1, 16) }
		o := mlx.AttendOptions{Scale: 1, Window: window, Ring: true}
		for _, writeFirst := range []bool{true, false} {
			store := mlx.Store{K: mlx.Zeros(e, mlx.Float32, 1, 1, window, 16), V: mlx.Zeros(e, mlx.Float32, 1, 1, window, 16)}
			_, stores := mlx.Attend(rows(window, 1), rows(window, 1), rows(window, 1),
				[]mlx.AttendSegment{{Store: store, Rows: window}}, o)
			mlx.Eval(stores[0].K, stores[0].V)
			before := e.Memory().Active

			at := mlx.AttendSegment{Store: stores[0], Rows: 1, Position: window - 1, Seen: window}
			seen, read := mlx.AttendStored(rows(1, 1), []mlx.AttendSegment{at}, o)
			o := o
			o.After = []*mlx.Array{read}
			next := mlx.AttendSegment{Store: stores[0], Rows: window, Position: window}
			after, written := mlx.Attend(rows(window, 1), rows(window, 5), rows(window, 5), []mlx.AttendSegment{next}, o)
			list := []*mlx.Array{written[0].V, written[0].K, after, seen}
			if !writeFirst {
				slices.Reverse(list)
			}
			mlx.Eval(list...)
			if got := seen.Float32s()[0]; got != 1 {
				t.Errorf("write first %v: the reader saw %v of the later write", writeFirst, got)
			}
			if got := written[0].V.Float32s()[0]; got != 5 {
				t.Errorf("write first %v: the new version holds %v", writeFirst, got)
			}
			if grown := e.Memory().Active - before; !e.Info().GPU && grown > 4096 {
				t.Errorf("the new version allocated %d bytes", grown)
			}
		}
	})
}

func TestAttendRefuses(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		zeros := func(shape ...int) *mlx.Array { return mlx.Zeros(e, mlx.Float32, shape...) }
		store := mlx.Store{K: zeros(1, 2, 8, 4), V: zeros(1, 2, 8, 4)}
		q, k := zeros(3, 4, 4), zeros(3, 2, 4)
		at := func(rows, position int) []mlx.AttendSegment {
			return []mlx.AttendSegment{{Store: store, Rows: rows, Position: position}}
		}
		for name, try := range map[string]func(){
			"past the storage": func() { mlx.Attend(q, k, k, at(3, 6), mlx.AttendOptions{}) },
			"fewer rows":       func() { mlx.Attend(q, k, k, at(2, 0), mlx.AttendOptions{}) },
			"more rows":        func() { mlx.Attend(q, k, k, append(at(3, 0), at(1, 0)...), mlx.AttendOptions{}) },
			"rows not stored": func() {
				s := mlx.AttendSegment{Store: store, Rows: 3, Position: 1, Stored: 2}
				mlx.Attend(q, mlx.Slice(k, mlx.Range(0, 2), mlx.All(), mlx.All()),
					mlx.Slice(k, mlx.Range(0, 2), mlx.All(), mlx.All()), []mlx.AttendSegment{s}, mlx.AttendOptions{})
			},
			"rows before the first": func() {
				s := mlx.AttendSegment{Store: store, Rows: 1, Position: 1, Stored: 3}
				mlx.Attend(mlx.Slice(q, mlx.Range(0, 1), mlx.All(), mlx.All()), k, k, []mlx.AttendSegment{s}, mlx.AttendOptions{})
			},
			"no segment":   func() { mlx.Attend(q, k, k, nil, mlx.AttendOptions{}) },
			"negative":     func() { mlx.Attend(q, k, k, at(3, -1), mlx.AttendOptions{}) },
			"no keys":      func() { mlx.Attend(q, nil, k, at(3, 0), mlx.AttendOptions{}) },
			"no values":    func() { mlx.Attend(q, k, nil, at(3, 0), mlx.AttendOptions{}) },
			"heads":        func() { mlx.Attend(zeros(3, 3, 4), k, k, at(3, 0), mlx.AttendOptions{}) },
			"size":         func() { mlx.Attend(zeros(3, 4, 8), k, k, at(3, 0), mlx.AttendOptions{}) },
			"wide window":  func() { mlx.Attend(q, k, k, at(3, 0), mlx.AttendOptions{Window: 9, Ring: true}) },
			"sinks":        func() { mlx.Attend(q, k, k, at(3, 0), mlx.AttendOptions{Sinks: zeros(3)}) },
			"nothing seen": func() { mlx.AttendStored(q, at(3, 0), mlx.AttendOptions{}) },
			"bits that are not": func() {
				s := mlx.AttendSegment{Store: mlx.Store{K: store.K, V: store.V, Bits: 8}, Rows: 3}
				mlx.Attend(q, k, k, []mlx.AttendSegment{s}, mlx.AttendOptions{})
			},
			"bits and no bits": func() {
				packed := mlx.Store{K: mlx.Zeros(e, mlx.Uint8, 1, 2, 8, 8), V: mlx.Zeros(e, mlx.Uint8, 1, 2, 8, 8), Bits: 8}
				mlx.Attend(q, k, k, append(at(2, 0), mlx.AttendSegment{Store: packed, Rows: 1}), mlx.AttendOptions{})
			},
			"bytes that fit no size": func() {
				s := mlx.AttendSegment{Store: mlx.Store{K: mlx.Zeros(e, mlx.Uint8, 1, 2, 8, 9),
					V: mlx.Zeros(e, mlx.Uint8, 1, 2, 8, 9), Bits: 8}, Rows: 3}
				mlx.Attend(q, k, k, []mlx.AttendSegment{s}, mlx.AttendOptions{})
			},
			"bits of another number": func() {
				s := mlx.AttendSegment{Store: mlx.Store{K: mlx.Zeros(e, mlx.Uint8, 1, 2, 8, 8),
					V: mlx.Zeros(e, mlx.Uint8, 1, 2, 8, 8), Bits: 5}, Rows: 3}
				mlx.Attend(q, k, k, []mlx.AttendSegment{s}, mlx.AttendOptions{})
			},
			"lost by the ring": func() {
				s := mlx.AttendSegment{Store: store, Rows: 3, Position: 4, Seen: 20}
				mlx.AttendStored(q, []mlx.AttendSegment{s}, mlx.AttendOptions{Window: 4, Ring: true})
			},
		} {
			func() {
				defer func() {
					if _, ok := recover().(*mlx.Error); !ok {
						t.Errorf("%s: no *mlx.Error", name)
					}
				}()
				try()
			}()
		}
	})
}
