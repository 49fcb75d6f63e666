package nn_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/nn"
)

func TestNewBatch(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		a, b := cache.NewSequence([]cache.Kind{cache.Full}), cache.NewSequence([]cache.Kind{cache.Full})
		defer a.Free()
		defer b.Free()
		x := mlx.Zeros(e, mlx.Float32, 7, 1, 2)
		seven := &nn.Batch{Segments: []nn.Segment{{Seq: b, Len: 7}}}
		nn.Attend(seven, 0, x, x, x, nn.AttendOptions{Scale: 1})
		batch := nn.NewBatch(e, nn.Part{Seq: a, Tokens: []int32{5, 6, 7}}, nn.Part{Seq: b, Tokens: []int32{8, 9}, All: true})
		if got := mlx.ToSlice[int32](batch.Tokens); !slices.Equal(got, []int32{5, 6, 7, 8, 9}) {
			t.Errorf("tokens %v", got)
		}
		if got := mlx.ToSlice[int32](batch.Positions); !slices.Equal(got, []int32{0, 1, 2, 7, 8}) {
			t.Errorf("positions %v", got)
		}
		if !slices.Equal(batch.Want, []int{2, 3, 4}) || batch.Rows() != 5 {
			t.Errorf("wanted rows are %v of %d", batch.Want, batch.Rows())
		}
		want := []nn.Segment{{Seq: a, Row: 0, Len: 3, Pos: 0}, {Seq: b, Row: 3, Len: 2, Pos: 7}}
		if !slices.Equal(batch.Segments, want) {
			t.Errorf("segments %v", batch.Segments)
		}
		rows := mlx.FromSlice(e, []float32{0, 1, 2, 3, 4}, 5, 1)
		if got := batch.Wanted(rows).Float32s(); !slices.Equal(got, []float32{2, 3, 4}) {
			t.Errorf("wanted rows %v", got)
		}
	})
}

// Attention over a packed batch equals attention of each sequence alone, by a reference implementation.
func TestAttendPacked(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		const heads, kvHeads, dim = 4, 2, 8
		key := mlx.RandomKey(e, 1)
		random := func(n, h int) *mlx.Array {
			keys := mlx.RandomSplit(key, 2)
			key = mlx.Reshape(mlx.Slice(keys, mlx.At(0), mlx.All()), 2)
			return mlx.RandomNormal(key, mlx.Float32, n, h, dim)
		}
		lengths := []int{5, 1, 3}
		total := 9
		q, k, v := random(total, heads), random(total, kvHeads), random(total, kvHeads)
		batch := &nn.Batch{Tokens: mlx.Zeros(e, mlx.Int32, total)}
		row := 0
		for _, n := range lengths {
			s := cache.NewSequence([]cache.Kind{cache.Full})
			defer s.Free()
			batch.Segments = append(batch.Segments, nn.Segment{Seq: s, Row: row, Len: n})
			row += n
		}
		got := nn.Attend(batch, 0, q, k, v, nn.AttendOptions{Scale: 0.3}).Float32s()
		for _, s := range batch.Segments {
			for i := range s.Len {
				want := attendOne(q, k, v, s.Row, s.Row+i, 0.3)
				for j, w := range want {
					if d := got[(s.Row+i)*heads*dim+j] - w; d > 1e-5 || d < -1e-5 {
						t.Fatalf("row %d, element %d: difference %v", s.Row+i, j, d)
					}
				}
			}
		}
	})
}

// Layers that share keys and values, and drafts, read what is stored. The next step writes only after they have read.
func TestAttendStored(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		x := mlx.RandomNormal(mlx.RandomKey(e, 1), mlx.Float32, 7, 2, 16)
		batch := &nn.Batch{}
		for i, n := range []int{4, 3} {
			s := cache.NewSequence([]cache.Kind{cache.Full})
			defer s.Free()
			batch.Segments = append(batch.Segments, nn.Segment{Seq: s, Row: 4 * i, Len: n})
		}
		o := nn.AttendOptions{Scale: 0.3, Window: 3}
		if err := failure(func() { nn.AttendStored(batch, 0, x, o) }); err == nil ||
			!strings.Contains(err.Error(), "stored nothing") {
			t.Errorf("reading an empty cache: %v", err)
		}
		want := nn.Attend(batch, 0, x, x, x, o)
		got := nn.AttendStored(batch, 0, x, o)
		for _, s := range batch.Segments {
			s.Seq.Rewind(0)
		}
		// The sequences continue one after the other: each waits for its own reader.
		for _, s := range batch.Segments {
			one := &nn.Batch{Segments: []nn.Segment{{Seq: s.Seq, Len: 7}}}
			y := mlx.Zeros(e, mlx.Float32, 7, 2, 16)
			nn.Attend(one, 0, y, y, y, o)
			mlx.Eval(s.Seq.State()...)
		}
		if !slices.Equal(got.Float32s(), want.Float32s()) {
			t.Error("AttendStored differs from Attend")
		}
	})
}

// failure returns the error of a failed operation in fn.
func failure(fn func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	fn()
	return nil
}

// attendOne returns the attention of one row to the rows from first to itself, head by head.
func attendOne(q, k, v *mlx.Array, first, row int, scale float64) []float32 {
	var out []float32
	group := q.Dim(1) / k.Dim(1)
	span := mlx.Range(first, row+1)
	for h := range q.Dim(1) {
		qh := mlx.Reshape(mlx.Slice(q, mlx.At(row), mlx.At(h), mlx.All()), -1, 1)
		kh := mlx.Reshape(mlx.Slice(k, span, mlx.At(h/group), mlx.All()), row+1-first, -1)
		vh := mlx.Reshape(mlx.Slice(v, span, mlx.At(h/group), mlx.All()), row+1-first, -1)
		p := mlx.Softmax(mlx.MultiplyScalar(mlx.MatMul(kh, qh), scale), true, 0)
		out = append(out, mlx.Sum(mlx.Multiply(p, vh), false, 0).Float32s()...)
	}
	return out
}

func TestAttendNeedsACache(t *testing.T) {
	err := mlxtest.Try(t, func(e *mlx.Thread) {
		x := mlx.Zeros(e, mlx.Float32, 1, 1, 2)
		batch := nn.NewBatch(e, nn.Part{Seq: cache.NewSequence([]cache.Kind{cache.None}), Tokens: []int32{1}})
		nn.Attend(batch, 0, x, x, x, nn.AttendOptions{Scale: 1})
	})
	var failed *mlx.Error
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "layer 0") {
		t.Errorf("got %v", err)
	}
}

// Rows are rotated by their own positions, and YaRN's factor scales the rotated channels.
func TestRope(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		w := nn.NewWeights(mlx.Float32, nil)
		defer w.Free()
		plain := nn.NewRope(e, w, config.Rope{Type: config.RopeDefault, Theta: 10000}, 4)
		x := mlx.FromSlice(e, []float32{1, 2, 3, 4, 1, 2, 3, 4}, 2, 1, 4)
		b := &nn.Batch{Positions: mlx.FromSlice(e, []int32{0, 2})}
		q, k := plain.Apply(b, x, x)
		got := q.Float32s()
		if !slices.Equal(got, k.Float32s()) {
			t.Errorf("keys are rotated to %v, queries to %v", k.Float32s(), got)
		}
		// Position 2: pairs (1, 3) by 2 radians and (2, 4) by 0.02.
		want := []float32{1, 2, 3, 4, -3.1440387, 1.9196053, -0.33914301, 4.0391974}
		for i := range want {
			if d := got[i] - want[i]; d > 2e-6 || d < -2e-6 {
				t.Errorf("element %d is %v, want %v", i, got[i], want[i])
			}
		}
		yarn := nn.NewRope(e, w, config.Rope{Type: config.RopeYarn, Theta: 10000, Factor: 4, OriginalMax: 1 << 20,
			BetaFast: 32,
			BetaSlow: 1, AttentionFactor: 2}, 4)
		zero := &nn.Batch{Positions: mlx.FromSlice(e, []int32{0, 0})}
		if q, _ := yarn.Apply(zero, x, x); !slices.Equal(q.Float32s()[:4], []float32{2, 4, 6, 8}) {
			t.Errorf("at position 0 with factor 2: %v", q.Float32s()[:4])
		}
	})
}

func TestWeights(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		zeros := func(shape ...int) *nn.Tensor {
			return &nn.Tensor{Array: mlx.Keep(mlx.Zeros(e, mlx.Float32, shape...))}
		}
		tensors := func() map[string]*nn.Tensor {
			return map[string]*nn.Tensor{"a.weight": zeros(2, 3), "b": zeros(1)}
		}
		for _, test := range []struct {
			name string
			take func(w *nn.Weights)
			want string
		}{
			{"all taken", func(w *nn.Weights) { nn.NewLinear(w, "a", 2, 3, false); w.Take("b", 1) }, ""},
			{"absent", func(w *nn.Weights) { w.Take("c", 1) }, "tensor c is missing"},
			{"a table of any height", func(w *nn.Weights) { w.Table("a.weight", 3); w.Take("b", 1) }, ""},
			{"a table of another width", func(w *nn.Weights) { w.Table("a.weight", 2) },
				"tensor a.weight has shape [2 3], want [2 2]"},
			{"an absent table", func(w *nn.Weights) { w.Table("c", 2) }, "tensor c is missing"},
			{"wrong shape", func(w *nn.Weights) { nn.NewLinear(w, "a", 3, 2, false) },
				"tensor a.weight has shape [2 3], want [3 2]"},
			{"left over", func(w *nn.Weights) { w.Take("b", 1) }, "tensor a.weight (of 1) is not used"},
		} {
			w := nn.NewWeights(mlx.Float32, tensors())
			test.take(w)
			err := w.Err()
			w.Free()
			if test.want == "" {
				if err != nil {
					t.Errorf("%s: %v", test.name, err)
				}
				continue
			}
			if !errors.Is(err, nn.ErrWeights) || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%s: got %v, want %s", test.name, err, test.want)
			}
		}
	})
}

// Packed weights give the same results as their decoded values, in every format, as a layer and as a table.
func TestPacked(t *testing.T) {
	formats := []nn.Packed{
		{Mode: mlx.Affine, Bits: 2, Group: 64}, {Mode: mlx.Affine, Bits: 3, Group: 32},
		{Mode: mlx.Affine, Bits: 4, Group: 64},
		{Mode: mlx.Affine, Bits: 5, Group: 64}, {Mode: mlx.Affine, Bits: 6, Group: 128},
		{Mode: mlx.Affine, Bits: 8, Group: 64},
		{Mode: mlx.MXFP4, Bits: 4, Group: 32}, {Mode: mlx.MXFP8, Bits: 8, Group: 32}, {Mode: mlx.NVFP4, Bits: 4, Group: 16},
	}
	for _, f := range formats {
		mlxtest.Do(t, func(e *mlx.Thread) {
			const out, in = 6, 128
			weight := mlx.RandomNormal(mlx.RandomKey(e, 3), mlx.Float32, out, in)
			parts := mlx.Quantize(weight, f.Group, f.Bits, f.Mode, nil)
			p := f
			p.Scales = mlx.Keep(parts[1])
			if len(parts) > 2 {
				p.Biases = mlx.Keep(parts[2])
			}
			plain := mlx.Dequantize(parts[0], p.Scales, p.Biases, f.Group, f.Bits, f.Mode, nil, mlx.Float32)
			w := nn.NewWeights(mlx.Float32, map[string]*nn.Tensor{"a.weight": {Array: mlx.Keep(parts[0]), Packed: &p}})
			defer w.Free()
			layer, table := nn.NewLinear(w, "a", out, in, false), nn.NewEmbedding(w, "a", out, in)
			if err := w.Err(); err != nil {
				t.Fatalf("%+v: %v", f, err)
			}
			x := mlx.RandomNormal(mlx.RandomKey(e, 4), mlx.Float32, 3, in)
			want := mlx.MatMul(x, mlx.Transpose(plain))
			ids := mlx.FromSlice(e, []int32{5, 0, 5})
			for what, pair := range map[string][2]*mlx.Array{
				"layer": {layer.Apply(x), want}, "head": {table.Project(x), want},
				"rows": {table.Lookup(ids), mlx.Take(plain, ids, 0)},
			} {
				if d := mlx.Max(mlx.Abs(mlx.Subtract(pair[0], pair[1])), false).Float32s()[0]; d > 1e-4 {
					t.Errorf("%d bit, group %d, mode %d, %s: off by %v", f.Bits, f.Group, f.Mode, what, d)
				}
			}
		})
	}
}
