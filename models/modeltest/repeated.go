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

// repeated gives the scores of all tokens, taken one at a time beside another sequence whose tokens come two at a time, so that on a CPU
// nearly all forwards are done from a tape. In between the other sequence goes back, and both leave tokens in a transaction.
func (c *Checkpoint) repeated(t *testing.T, m models.Model) (scores []float32) {
	t.Helper()
	mlxtest.Do(t, func(e *mlx.Thread) {
		r := models.NewRepeater(e, m)
		seq, other := cache.NewSequence(m.Layers()), cache.NewSequence(m.Layers())
		defer seq.Free()
		defer other.Free()
		defer r.Forget()
		step := func(tokens []int32, from int) (said []float32) {
			pair := []int32{c.Tokens[from%len(c.Tokens)], c.Tokens[(from+1)%len(c.Tokens)]}
			e.Scope(func() {
				hidden := r.Forward(nn.Part{Seq: seq, Tokens: tokens, All: true}, nn.Part{Seq: other, Tokens: pair, All: true})
				said = slices.Clone(m.Head(hidden).Float32s()[:len(tokens)*c.Vocab])
			})
			return said
		}
		played := 0
		for i, token := range c.Tokens {
			if i%11 == 7 { // tokens that are taken back
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
			scores = append(scores, step([]int32{token}, i)...)
			if repeats && r.Repeats() {
				played++
			}
		}
		if want := !e.Info().GPU; played > len(c.Tokens)/4 != want {
			t.Errorf("%d of %d forwards were done from a tape", played, len(c.Tokens))
		}
	})
	return scores
}
