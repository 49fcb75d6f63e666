package modeltest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

// Draft checks the draft that a checkpoint brings for itself against its reference: it is given the text and the token that
// the model says next, at once and in pieces, and then goes on alone.
func Draft(t *testing.T, name string) {
	c := Load(t, name)
	for _, piece := range []int{len(c.Tokens), 1, 7} {
		t.Run(fmt.Sprintf("draft by %d", piece), func(t *testing.T) { c.checkDraft(t, name, piece) })
	}
}

func (c *Checkpoint) checkDraft(t *testing.T, name string, piece int) {
	t.Helper()
	draft := c.Model.(models.Drafter).Draft()
	if draft == nil {
		t.Fatal("the checkpoint's head is not offered as a draft")
	}
	nexts := append(slices.Clone(c.Tokens[1:]), c.Greedy[0])
	var hidden, scores, steps []float32
	var drafts []int32
	mlxtest.Do(t, func(e *mlx.Thread) {
		seq, own := cache.NewSequence(c.Model.Layers()), cache.NewSequence(draft.Layers())
		defer seq.Free()
		defer own.Free()
		state := c.Model.Forward(nn.NewBatch(e, nn.Part{Seq: seq, Tokens: c.Tokens, All: true}))
		step := func(said []int32, all bool) (hidden, logits *mlx.Array) {
			b := nn.NewBatch(e, nn.Part{Seq: own, Tokens: said, All: all})
			return draft.Step(&models.DraftBatch{
				Batch: b, Target: []*cache.Sequence{seq}, Vectors: c.Model.Embed(b.Tokens), Hidden: state,
			})
		}
		all, last := state, (*mlx.Array)(nil)
		for at := 0; at < len(nexts); at += piece {
			end := min(at+piece, len(nexts))
			state = mlx.SliceAxis(all, 0, mlx.Range(at, end))
			h, s := step(nexts[at:end], true)
			hidden, scores = append(hidden, h.Float32s()...), append(scores, s.Float32s()...)
			state, last = mlx.SliceAxis(h, 0, mlx.Range(h.Dim(0)-1, h.Dim(0))), mlx.SliceAxis(s, 0, mlx.Range(s.Dim(0)-1, s.Dim(0)))
		}
		for {
			steps = append(steps, last.Float32s()...)
			drafts = append(drafts, int32(mlx.ArgMax(last, -1, false).Int()))
			if len(drafts) == 3 {
				return
			}
			state, last = step(drafts[len(drafts)-1:], false)
		}
	})
	wantClose(t, "hidden states", hidden, Golden[float32](t, name, "mtp_hidden"))
	wantClose(t, "scores", scores, Golden[float32](t, name, "mtp_logits"))
	wantClose(t, "scores of steps alone", steps, Golden[float32](t, name, "mtp_steps"))
	if want := Golden[int32](t, name, "mtp_drafts"); !slices.Equal(drafts, want) {
		t.Errorf("drafted %v, want %v", drafts, want)
	}
}

// wantClose compares with a tolerance of [Tolerance] root mean squares.
func wantClose(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	squares, worst := 0.0, 0.0
	for i := range want {
		squares += float64(want[i]) * float64(want[i])
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= worst) { // NaN counts
			worst = d
		}
	}
	size := math.Sqrt(squares / float64(len(want)))
	t.Logf("%s: largest difference %.2g of the root mean square", what, worst/size)
	if !(worst < Tolerance*size) {
		t.Errorf("%s: off by %v of the root mean square", what, worst/size)
	}
}
