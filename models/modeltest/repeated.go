package modeltest

import (
	"slices"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

// repeated returns the logits of all tokens, processed one at a time next to another sequence with two tokens per step,
// so that a CPU replays nearly all forward passes from a tape. From time to time the other sequence is rewound, and
// both roll back tokens of a transaction.
func (c *Checkpoint) repeated(t *testing.T, m models.Model) (logits []float32) {
	t.Helper()
	mlxtest.Do(t, func(e *mlx.Thread) {
		r := models.NewRepeater(e, m)
		seq, other := cache.NewSequence(m.Layers()), cache.NewSequence(m.Layers())
		defer seq.Free()
		defer other.Free()
		defer r.Forget()
		step := func(tokens []int32, from int) (out []float32) {
			pair := []int32{c.Tokens[from%len(c.Tokens)], c.Tokens[(from+1)%len(c.Tokens)]}
			e.Scope(func() {
				hidden := r.Forward(nn.Part{Seq: seq, Tokens: tokens, All: true}, nn.Part{Seq: other, Tokens: pair, All: true})
				out = slices.Clone(m.Head(hidden).Float32s()[:len(tokens)*c.Vocab])
			})
			return out
		}
		replayed := 0
		for i, token := range c.Tokens {
			if i%11 == 7 { // tokens that are rolled back
				seq.Begin()
				other.Begin()
				step([]int32{c.Tokens[0]}, i)
				step([]int32{c.Tokens[1]}, i)
				seq.Commit(0)
				other.Commit(3)
			}
			if i%13 == 12 {
				r.Forget()
				other.Rewind(0)
			}
			repeats := r.Repeats()
			logits = append(logits, step([]int32{token}, i)...)
			if repeats && r.Repeats() {
				replayed++
			}
		}
		if want := !e.Info().GPU && !c.Limits.Unrepeated; replayed > len(c.Tokens)/4 != want {
			t.Errorf("%d of %d forward passes were replayed from a tape", replayed, len(c.Tokens))
		}
	})
	return logits
}
