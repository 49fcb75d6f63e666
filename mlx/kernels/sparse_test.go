package kernels_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// Rows choose the positions with the highest scores, computed in float64, and attend to exactly those.
func TestSparseAttention(t *testing.T) {
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(32, 3))
		for _, d := range floatTypes {
			for _, c := range []struct{ heads, dim, budget, rows, position, capacity int }{
				{1, 4, 3, 1, 0, 8}, {3, 20, 4, 5, 2, 8}, {17, 36, 130, 3, 140, 256}, {64, 128, 9, 2, 700, 1024},
			} {
				name := fmt.Sprintf("%v %+v", d, c)
				q, w := normalRows(e, r, d, 1, c.rows, c.heads*c.dim), normalRows(e, r, mlx.Float32, 1, c.rows, c.heads)
				store := normalRows(e, r, d, 1, c.capacity, c.dim)
				segments := []mlx.AttendSegment{{
					Store: mlx.Store{K: mlx.Reshape(store.Array, 1, 1, c.capacity, c.dim)}, Rows: c.rows, Position: c.position,
				}}
				queries := mlx.Reshape(q.Array, c.rows, c.heads, c.dim)
				at, _ := mlx.ChooseKeys(queries, w.Array, segments, c.budget, mlx.ChosenOptions{})
				chosen := mlx.ToSlice[int32](at)
				values := (c.dim + 1) / 2
				out, _ := mlx.AttendChosen(queries, at, segments, nil, mlx.ChosenOptions{Scale: 0.2, Values: values})
				got := mlxtest.Numbers(out.ToBytes(), d)
				for i := range c.rows {
					own := slices.DeleteFunc(slices.Clone(chosen[i*c.budget:][:c.budget]), func(p int32) bool { return p < 0 })
					checkChosen(t, name, own, c.budget, indexScores(q.v[i*c.heads*c.dim:], w.v[i*c.heads:], store.v,
						c.heads, c.dim, c.position+i+1))
					for h := range c.heads {
						want := attention(q.v[(i*c.heads+h)*c.dim:][:c.dim], store.v, own, 0.2, values)
						for j, v := range want {
							if g := got[(i*c.heads+h)*values+j]; !(math.Abs(g-v) < tolerance(d)) {
								t.Fatalf("%s: row %d, head %d, channel %d is %v, want %v", name, i, h, j, g, v)
							}
						}
					}
				}
			}
		}
	})
}

func tolerance(d mlx.DType) float64 {
	return map[mlx.DType]float64{mlx.Float32: 1e-4, mlx.Float16: 3e-3, mlx.BFloat16: 2e-2}[d]
}

// indexScores returns the scores of n positions.
func indexScores(q, weights, keys []float64, heads, dim, n int) []float64 {
	scores := make([]float64, n)
	for p := range scores {
		for h := range heads {
			dot := 0.0
			for j := range dim {
				dot += q[h*dim+j] * keys[p*dim+j]
			}
			scores[p] += weights[h] * max(dot, 0)
		}
	}
	return scores
}

// checkChosen checks that positions are ascending, as many as possible, and none scores clearly less than another.
func checkChosen(t *testing.T, name string, chosen []int32, budget int, scores []float64) {
	t.Helper()
	if len(chosen) != min(budget, len(scores)) || !slices.IsSorted(chosen) {
		t.Fatalf("%s: chose %v of %d positions, want %d in order", name, chosen, len(scores), min(budget, len(scores)))
	}
	lowest := math.Inf(1)
	for _, p := range chosen {
		lowest = min(lowest, scores[p])
	}
	for p, score := range scores {
		if !slices.Contains(chosen, int32(p)) && score > lowest+1e-3 {
			t.Fatalf("%s: position %d scores %v and is not chosen, the lowest chosen one %v", name, p, score, lowest)
		}
	}
}

// attention returns the attention of a query over some keys, whose first channels are the values.
func attention(q, keys []float64, at []int32, scale float64, values int) []float64 {
	out, total := make([]float64, values), 0.0
	for _, p := range at {
		key := keys[int(p)*len(q):][:len(q)]
		score := 0.0
		for j, v := range key {
			score += v * q[j]
		}
		weight := math.Exp(score * scale)
		total += weight
		for j := range out {
			out[j] += weight * key[j]
		}
	}
	for j := range out {
		out[j] /= total
	}
	return out
}

// Of positions with the same score the first ones are chosen, on each run and however rows are grouped.
func TestSparseTies(t *testing.T) {
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		const rows, capacity, budget = 3, 300, 130
		store := mlx.Store{K: mlx.Full(e, 1, mlx.Float32, 1, 1, capacity, 8)}
		segments := []mlx.AttendSegment{{Store: store, Rows: rows, Position: capacity - rows}}
		queries, weights := mlx.Full(e, 1, mlx.Float32, rows, 2, 8), mlx.Full(e, 1, mlx.Float32, rows, 2)
		at, _ := mlx.ChooseKeys(queries, weights, segments, budget, mlx.ChosenOptions{})
		for i, p := range mlx.ToSlice[int32](at) {
			if int(p) != i%budget {
				t.Fatalf("choice %d of row %d is position %d, want the first %d", i%budget, i/budget, p, budget)
			}
		}
	})
}
