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

// Draft checks the built-in draft of a checkpoint against its reference. The draft first processes the text and the
// target's next token, at once and in chunks, and then drafts on its own.
func Draft(t *testing.T, name string) {
	c := Load(t, name)
	for _, chunk := range []int{len(c.Tokens), 1, 7} {
		t.Run(fmt.Sprintf("draft by %d", chunk), func(t *testing.T) { c.checkDraft(t, name, chunk) })
	}
}

func (c *Checkpoint) checkDraft(t *testing.T, name string, chunk int) {
	t.Helper()
	draft := c.Model.(models.Drafter).Draft()
	if draft == nil {
		t.Fatal("Draft() = nil, but the checkpoint has a draft")
	}
	nexts := append(slices.Clone(c.Tokens[1:]), c.Greedy[0])
	var hidden, logits, steps []float32
	var drafts []int32
	mlxtest.Do(t, func(e *mlx.Thread) {
		seq, own := cache.NewSequence(c.Model.Layers()), cache.NewSequence(draft.Layers())
		defer seq.Free()
		defer own.Free()
		state := c.Model.Forward(nn.NewBatch(e, nn.Part{Seq: seq, Tokens: c.Tokens, All: true}))
		step := func(tokens []int32, all bool) (hidden, logits *mlx.Array) {
			b := nn.NewBatch(e, nn.Part{Seq: own, Tokens: tokens, All: all})
			return draft.Step(&models.DraftBatch{
				Batch: b, Target: []*cache.Sequence{seq}, Vectors: c.Model.Embed(b.Tokens), Hidden: state,
			})
		}
		all, last := state, (*mlx.Array)(nil)
		for at := 0; at < len(nexts); at += chunk {
			end := min(at+chunk, len(nexts))
			state = mlx.SliceAxis(all, 0, mlx.Range(at, end))
			h, s := step(nexts[at:end], true)
			hidden, logits = append(hidden, h.Float32s()...), append(logits, s.Float32s()...)
			lastOf := func(x *mlx.Array) *mlx.Array { return mlx.SliceAxis(x, 0, mlx.Range(x.Dim(0)-1, x.Dim(0))) }
			state, last = lastOf(h), lastOf(s)
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
	wantClose(t, "logits", logits, Golden[float32](t, name, "mtp_logits"))
	wantClose(t, "logits of drafting steps", steps, Golden[float32](t, name, "mtp_steps"))
	if want := Golden[int32](t, name, "mtp_drafts"); !slices.Equal(drafts, want) {
		t.Errorf("drafted %v, want %v", drafts, want)
	}
}

// wantClose compares values with a tolerance of [Tolerance] times the root mean square of want.
func wantClose(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	squares, worst := 0.0, 0.0
	for i := range want {
		squares += float64(want[i]) * float64(want[i])
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= worst) { // also true for NaN
			worst = d
		}
	}
	size := math.Sqrt(squares / float64(len(want)))
	t.Logf("%s: largest difference %.2g of the root mean square", what, worst/size)
	if !(worst < Tolerance*size) {
		t.Errorf("%s: largest difference is %v of the root mean square", what, worst/size)
	}
}
