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

// stored is a sequence in a store, and a copy of its keys and values by position.
type stored struct {
	store mlx.Store
	k, v  [][]float64 // [position][heads*dim]
}

type attendCase struct {
	heads, kvHeads, dim, valueDim int

	window, capacity int // capacity > 0 means a ring
	chunked          bool
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
	o := mlx.AttendOptions{Scale: 0.2, SoftCap: c.softcap, Window: c.window, Chunked: c.chunked, Ring: c.capacity > 0}
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
		if c.chunked {
			first = (len(s.k) - 1) / c.window * c.window
		}
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
		{heads: 5, kvHeads: 1, dim: 20, valueDim: 12, steps: steps, window: 6, chunked: true},
		{heads: 4, kvHeads: 2, dim: 64, valueDim: 64, steps: steps, window: 11, capacity: 11, chunked: true},
		{heads: 4, kvHeads: 2, dim: 64, valueDim: 32, steps: steps, window: 64, capacity: 80, chunked: true, sinks: true},
		{heads: 2, kvHeads: 1, dim: 64, valueDim: 32, steps: steps, latent: true, window: 4, capacity: 5, sinks: true},
		{heads: 4, kvHeads: 2, dim: 32, valueDim: 32, steps: steps, bits: 8},
		{heads: 5, kvHeads: 1, dim: 20, valueDim: 12, steps: steps, bits: 4, window: 6, chunked: true},
		{heads: 8, kvHeads: 1, dim: 96, valueDim: 64, steps: steps, bits: 4, sinks: true, softcap: 3},
		{heads: 5, kvHeads: 1, dim: 20, valueDim: 12, steps: steps, bits: 4, window: 6},
		{heads: 3, kvHeads: 3, dim: 80, valueDim: 40, steps: steps, bits: 8, window: 11, capacity: 11},
		{heads: 4, kvHeads: 2, dim: 64, valueDim: 64, steps: steps, bits: 4, window: 11, capacity: 23, softcap: 5},
		{heads: 6, kvHeads: 1, dim: 64, valueDim: 32, steps: steps, bits: 8, latent: true},
		{heads: 2, kvHeads: 1, dim: 96, valueDim: 64, steps: steps, bits: 4, latent: true, window: 4, capacity: 5,
			sinks: true},
	}
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
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
			{Scale: 0.2, Window: 4, Chunked: true}, {Scale: 0.2, Window: 4, Chunked: true, Ring: true},
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
