package qwen3_5_test

import (
	"math"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/models/nn"
	_ "github.com/ingotml/ingot/models/qwen3_5"
)

// A long text gives the same logits in chunks of hundreds of rows and of a few: the recurrent state does not drift.
func TestLongText(t *testing.T) {
	const rows = 2000
	c := modeltest.Load(t, "qwen3_5-default")
	tokens := make([]int32, rows)
	for i := range tokens {
		n := len(c.Tokens)
		tokens[i] = (c.Tokens[i%n] + int32(i/n)) % int32(c.Vocab)
	}
	last := func(chunk int) (logits []float32) {
		mlxtest.Do(t, func(e *mlx.Thread) {
			seq := cache.NewSequence(c.Model.Layers())
			defer seq.Free()
			for at := 0; at < rows; at += chunk {
				e.Scope(func() {
					part := nn.Part{Seq: seq, Tokens: tokens[at:min(at+chunk, rows)]}
					logits = c.Model.Head(c.Model.Forward(nn.NewBatch(e, part))).Float32s()
				})
			}
		})
		return logits
	}
	short, long, worst := last(9), last(700), 0.0
	for i := range short {
		worst = max(worst, math.Abs(float64(short[i])-float64(long[i])))
	}
	t.Logf("largest difference %.2g standard deviations", worst/c.Scale)
	if !(worst < modeltest.Tolerance*c.Scale) {
		t.Errorf("difference of %v standard deviations after %d rows", worst/c.Scale, rows)
	}
}
