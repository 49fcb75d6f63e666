package nn_test

import (
	"slices"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/nn"
)

// Rows of images have the positions of their part, text after them is shifted, and other sequences are unaffected.
func TestBatchOfPictures(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		a, b, c := cache.NewSequence(nil), cache.NewSequence(nil), cache.NewSequence(nil)
		picture := mlx.FromSlice(e, []float32{10, 11, 12, 13}, 2, 2)
		last := mlx.FromSlice(e, []float32{20, 21}, 1, 2)
		batch := nn.NewBatch(e,
			nn.Part{Seq: a, Tokens: []int32{1, 2}},
			nn.Part{Seq: b, Tokens: []int32{3, 9, 9, 4}, Grid: [3][]int32{{0, 1, 1, 3}, {0, 1, 2, 3}, {0, 1, 1, 3}},
				Vectors: []nn.Vectors{{Row: 1, X: picture}}},
			nn.Part{Seq: c, Tokens: []int32{5, 9}, Shift: -1, Vectors: []nn.Vectors{{Row: 1, X: last}}})
		want := []int32{0, 1, 0, 1, 1, 3, -1, 0, 0, 1, 0, 1, 2, 3, -1, 0, 0, 1, 0, 1, 1, 3, -1, 0}
		if got := mlx.ToSlice[int32](batch.Grid); !slices.Equal(got, want) || !slices.Equal(batch.Grid.Shape(), []int{3, 8}) {
			t.Errorf("grid %v of shape %v, want %v", got, batch.Grid.Shape(), want)
		}
		if got := mlx.ToSlice[int32](batch.Positions); !slices.Equal(got, []int32{0, 1, 0, 1, 2, 3, 0, 1}) {
			t.Errorf("positions %v", got)
		}
		x := mlx.Zeros(e, mlx.Float32, 8, 2)
		if got := batch.Embedded(x).Float32s(); !slices.Equal(got,
			[]float32{0, 0, 0, 0, 0, 0, 10, 11, 12, 13, 0, 0, 0, 0, 20, 21}) {
			t.Errorf("embedded %v", got)
		}
		half := mlx.Zeros(e, mlx.BFloat16, 8, 2)
		if got := batch.Embedded(half).DType(); got != mlx.BFloat16 {
			t.Errorf("vectors over bfloat16 rows give %v", got)
		}
		plain := nn.NewBatch(e, nn.Part{Seq: a, Tokens: []int32{1, 2}})
		if plain.Grid != nil || plain.Embedded(x) != x {
			t.Error("a batch without pictures has a grid, or vectors")
		}
	})
}

func TestNextBatch(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		seq := cache.NewSequence([]cache.Kind{cache.Full})
		defer seq.Free()
		x := mlx.Zeros(e, mlx.Float32, 7, 1, 2)
		nn.Attend(&nn.Batch{Segments: []nn.Segment{{Seq: seq, Len: 7}}}, 0, x, x, x, nn.AttendOptions{Scale: 1})
		token := mlx.FromSlice(e, []int32{3})
		plain, shifted := nn.NextBatch(token, nn.Part{Seq: seq}), nn.NextBatch(token, nn.Part{Seq: seq, Shift: -4})
		if plain.Grid != nil || plain.Positions.Int() != 7 {
			t.Errorf("without a shift: position %d, grid %v", plain.Positions.Int(), plain.Grid)
		}
		if got := mlx.ToSlice[int32](shifted.Grid); !slices.Equal(got, []int32{3, 3, 3}) || shifted.Positions.Int() != 7 ||
			shifted.Segments[0].Pos != 7 {
			t.Errorf("shifted by -4: grid %v, position %d", got, shifted.Positions.Int())
		}
		other := cache.NewSequence([]cache.Kind{cache.Full})
		two := nn.NextBatch(mlx.FromSlice(e, []int32{3, 5}), nn.Part{Seq: other, Shift: 2}, nn.Part{Seq: seq, Text: 9})
		if got := mlx.ToSlice[int32](two.Positions); !slices.Equal(got, []int32{0, 7}) || two.Segments[1].Row != 1 ||
			two.Segments[1].Text != 9 {
			t.Errorf("two sequences: positions %v, segments %+v", got, two.Segments)
		}
		if got := mlx.ToSlice[int32](two.Grid); !slices.Equal(got, []int32{2, 7, 2, 7, 2, 7}) {
			t.Errorf("two sequences: grid %v", got)
		}
	})
}
