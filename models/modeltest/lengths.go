package modeltest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

// Lengths is Paths for a text that exceeds the model's original context, where the rope depends on the length of the
// text. If the length is known beforehand, the logits of all paths equal the reference's for the whole text; otherwise
// they equal the reference's for the same steps.
func (c *Checkpoint) Lengths(t *testing.T, name string) {
	for _, n := range []int{len(c.Tokens), 7, 1} {
		t.Run(fmt.Sprintf("chunks of %d", n), func(t *testing.T) {
			c.compare(t, c.steps(t, n, len(c.Tokens), nil), c.Logits)
		})
	}
	t.Run("packed", func(t *testing.T) { c.compare(t, c.steps(t, 11, len(c.Tokens), c.Tokens[3:17]), c.Logits) })
	t.Run("steps of an unknown text", func(t *testing.T) {
		c.compare(t, c.steps(t, 1, 0, nil), Golden[float32](t, name, "steps"))
	})
	t.Run("greedy", func(t *testing.T) {
		var got []int32
		mlxtest.Do(t, func(e *mlx.Thread) {
			seq := cache.NewSequence(c.Model.Layers())
			defer seq.Free()
			for next := c.Tokens; len(got) < len(c.Greedy); next = got[len(got)-1:] {
				hidden := c.Model.Forward(nn.NewBatch(e, nn.Part{Seq: seq, Tokens: next}))
				got = append(got, int32(mlx.ArgMax(c.Model.Head(hidden), -1, false).Int()))
			}
		})
		if !slices.Equal(got, c.Greedy) {
			t.Errorf("got %v, want %v", got, c.Greedy)
		}
	})
}

// steps returns the logits of all tokens, processed n at a time with the given Part.Text. If there is another sequence,
// it is first in each batch.
func (c *Checkpoint) steps(t *testing.T, n, length int, other []int32) []float32 {
	t.Helper()
	var logits []float32
	mlxtest.Do(t, func(e *mlx.Thread) {
		seq, side := cache.NewSequence(c.Model.Layers()), cache.NewSequence(c.Model.Layers())
		defer seq.Free()
		defer side.Free()
		r := models.NewRepeater(e, c.Model)
		defer r.Forget()
		for chunk := range slices.Chunk(c.Tokens, n) {
			parts := []nn.Part{{Seq: seq, Tokens: chunk, All: true, Text: length}}
			skip := min(len(other), 1)
			if skip > 0 {
				take := min(5, len(other))
				parts = slices.Insert(parts, 0, nn.Part{Seq: side, Tokens: other[:take]})
				other = other[take:]
			}
			e.Scope(func() {
				logits = append(logits, c.Model.Head(r.Forward(parts...)).Float32s()[skip*c.Vocab:]...)
			})
		}
	})
	return logits
}
