package nn_test

import (
	"slices"
	"testing"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/nn"
)

// The rows of a narrow batch attend to what the whole batch stored, with the same results as in the whole batch.
func TestNarrow(t *testing.T) {
	for _, test := range []struct {
		name string
		want []int
		segs [][3]int // first row, rows, position
	}{
		{"last rows", []int{3, 8}, [][3]int{{0, 1, 3}, {1, 1, 4}}},
		{"several of one", []int{3, 6, 7, 8}, [][3]int{{0, 1, 3}, {1, 3, 2}}},
		{"all of one", []int{0, 1, 2, 3, 8}, [][3]int{{0, 4, 0}, {4, 1, 4}}},
	} {
		mlxtest.Do(t, func(e *mlx.Thread) {
			grid := make([]int32, 27)
			for i := range grid {
				grid[i] = int32(i)
			}
			b := &nn.Batch{
				Tokens:    mlx.FromSlice(e, []int32{9, 8, 7, 6, 5, 4, 3, 2, 1}),
				Positions: mlx.FromSlice(e, []int32{0, 1, 2, 3, 0, 1, 2, 3, 4}),
				Grid:      mlx.FromSlice(e, grid, 3, 9),
				Want:      test.want,
			}
			for i, n := range []int{4, 5} {
				s := cache.NewSequence([]cache.Kind{cache.Full})
				defer s.Free()
				b.Segments = append(b.Segments, nn.Segment{Seq: s, Row: 4 * i, Len: n})
			}
			x := mlx.RandomNormal(mlx.RandomKey(e, 1), mlx.Float32, 9, 2, 16)
			o := nn.AttendOptions{Scale: 0.3, Window: 3}
			whole := b.Wanted(nn.Attend(b, 0, x, x, x, o))
			n := b.Narrow()
			var segs [][3]int
			for _, s := range n.Segments {
				segs = append(segs, [3]int{s.Row, s.Len, s.Pos})
				if s.Text != s.Seq.Offset() {
					t.Errorf("%s: Text is %d, want %d", test.name, s.Text, s.Seq.Offset())
				}
			}
			if !slices.Equal(segs, test.segs) {
				t.Errorf("%s: segments %v, want %v", test.name, segs, test.segs)
				return
			}
			if n.Rows() != len(test.want) || n.Want != nil {
				t.Errorf("%s: %d rows, of which %v are wanted", test.name, n.Rows(), n.Want)
			}
			for i, row := range test.want {
				token, at := mlx.ToSlice[int32](n.Tokens)[i], mlx.ToSlice[int32](n.Grid)
				if token != int32(9-row) || at[i] != int32(row) || at[2*n.Rows()+i] != int32(row+18) {
					t.Errorf("%s: row %d is token %d at %v", test.name, i, token, at)
				}
			}
			got := nn.AttendStored(n, 0, b.Wanted(x), o)
			if d := mlx.Max(mlx.Abs(mlx.Subtract(got, whole)), false).Float32s()[0]; !(d < 1e-5) {
				t.Errorf("%s: differs by %v from the same rows in the whole batch", test.name, d)
			}
		})
	}
}

// If all rows are wanted, Narrow returns the batch itself.
func TestNarrowWhole(t *testing.T) {
	if b := (&nn.Batch{}); b.Narrow() != b {
		t.Error("a batch whose rows are all wanted became another")
	}
}

// Variants of norms and embeddings that Gemma models use.
func TestNormsAndScale(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		w := nn.NewWeights(mlx.Float32, map[string]*nn.Tensor{
			"norm.weight":  {Array: mlx.Keep(mlx.FromSlice(e, []float32{1, 0}))},
			"table.weight": {Array: mlx.Keep(mlx.FromSlice(e, []float32{3, 4, 5, 12}, 2, 2))},
		})
		defer w.Free()
		plusOne, plain := nn.NewRMSNorm(w, "norm", 2, 0).PlusOne(), nn.PlainRMSNorm(0)
		table := nn.NewEmbedding(w, "table", 2, 2).Scaled(2)
		x := mlx.FromSlice(e, []float32{1, 7}, 1, 2) // its root mean square is 5
		sum, normed := plusOne.AddApply(mlx.FromSlice(e, []float32{1, 3}, 1, 2), mlx.FromSlice(e, []float32{0, 4}, 1, 2))
		for _, test := range []struct {
			name string
			got  *mlx.Array
			want []float32
		}{
			{"1 + weight", plusOne.Apply(x), []float32{0.4, 1.4}},
			{"sum", sum, []float32{1, 7}},
			{"1 + weight of a sum", normed, []float32{0.4, 1.4}},
			{"no weight", plain.Apply(x), []float32{0.2, 1.4}},
			{"scaled vectors", table.Lookup(mlx.FromSlice(e, []int32{1})), []float32{10, 24}},
			{"scores are not scaled", table.Project(mlx.FromSlice(e, []float32{1, 1}, 1, 2)), []float32{7, 17}},
		} {
			for i, got := range test.got.Float32s() {
				if d := got - test.want[i]; d > 1e-6 || d < -1e-6 {
					t.Errorf("%s: %v, want %v", test.name, test.got.Float32s(), test.want)
					break
				}
			}
		}
	})
}

// The attention of an Ending batch gives the wanted rows the same results as the whole batch does, and stores the same.
func TestEnding(t *testing.T) {
	const heads, kvHeads, dim, hidden = 4, 2, 8, 16
	for _, test := range []struct {
		name   string
		rope   config.Rope
		window int
	}{
		{"whole", config.Rope{Type: config.RopeDefault, Theta: 100}, 0},
		{"window", config.Rope{Type: config.RopeDefault, Theta: 100}, 3},
		{"length-dependent rope", config.Rope{Type: config.RopeDynamic, Theta: 100, Factor: 2, Context: 4}, 0},
	} {
		mlxtest.Do(t, func(e *mlx.Thread) {
			attention, _, w, _ := normedAttention(t, e, heads, kvHeads, dim, hidden, test.rope, test.window)
			defer w.Free()
			norm := nn.PlainRMSNorm(1e-6)
			seq := func() *cache.Sequence { return cache.NewSequence([]cache.Kind{cache.Rotating(test.window)}) }
			all, ending := []*cache.Sequence{seq(), seq()}, []*cache.Sequence{seq(), seq()}
			for step, rows := range [][]int{{7, 3}, {1, 6}, {1, 1}} {
				batch := func(of []*cache.Sequence) *nn.Batch {
					return nn.NewBatch(e, nn.Part{Seq: of[0], Tokens: make([]int32, rows[0])},
						nn.Part{Seq: of[1], Tokens: make([]int32, rows[1]), All: rows[1] == 3})
				}
				x := mlx.RandomNormal(mlx.RandomKey(e, uint64(step)), mlx.Float32, rows[0]+rows[1], hidden)
				y := mlx.RandomNormal(mlx.RandomKey(e, 9), mlx.Float32, rows[0]+rows[1], hidden)
				b := batch(all)
				wantSum, want := attention.AddApply(b, norm, x, y)
				sum, got := attention.AddApply(batch(ending).Ending(), norm, x, y)
				wantNearly(t, test.name+": sum", sum, b.Wanted(wantSum))
				wantNearly(t, test.name+": attention", got, b.Wanted(want))
			}
			for _, s := range append(all, ending...) {
				s.Free()
			}
		})
	}
}
