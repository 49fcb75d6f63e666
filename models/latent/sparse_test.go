package latent

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/models/nn"
)

// While the context fits the budget, sparse attention equals dense attention, with or without choosing positions.
func TestSparseEqualsDense(t *testing.T) {
	const tokens = 20
	c := decoderOf(first(modeltest.Weights(t, "deepseek_v32-published")))
	r := rand.New(rand.NewPCG(32, 2))
	rows := make([]float32, tokens*c.Hidden)
	for i := range rows {
		rows[i] = float32(r.NormFloat64())
	}
	// run returns the attention of all rows, in chunks of 7.
	run := func(change func(*Attention)) (out []float32) {
		_, weights := modeltest.Weights(t, "deepseek_v32-published")
		mlxtest.Do(t, func(e *mlx.Thread) {
			rope := nn.NewRope(e, weights, c.Rope, c.Latent.RopeDim).Interleaved()
			a := NewAttention(weights, layerName, 0, &c, rope)
			a.sparse = newSparse(e, weights, &c).layer(weights, layerName+".indexer", 0)
			a.sparse.budget = tokens
			change(a)
			seq := cache.NewSequence([]cache.Kind{cache.Full})
			defer seq.Free()
			for begin := 0; begin < tokens; begin += 7 {
				end := min(begin+7, tokens)
				e.Scope(func() {
					b := nn.NewBatch(e, nn.Part{Seq: seq, Tokens: make([]int32, end-begin), All: true})
					x := mlx.FromSlice(e, rows[begin*c.Hidden:end*c.Hidden], end-begin, c.Hidden)
					out = append(out, a.apply(b, x).Float32s()...)
				})
			}
		})
		return out
	}
	want := run(func(a *Attention) { a.sparse = nil })
	for name, change := range map[string]func(*Attention){
		"within the budget": func(*Attention) {},
		"chosen":            func(a *Attention) { a.sparse.always = true },
	} {
		for i, got := range run(change) {
			if math.Abs(float64(got-want[i])) > 1e-5 {
				t.Fatalf("%s: element %d is %v, want %v", name, i, got, want[i])
			}
		}
	}
	// The budget has an effect.
	same := true
	for i, got := range run(func(a *Attention) { a.sparse.budget = 4 }) {
		same = same && math.Abs(float64(got-want[i])) < 1e-3
	}
	if same {
		t.Error("a budget of 4 positions changes nothing")
	}
}

func first[A, B any](a A, _ B) A { return a }
