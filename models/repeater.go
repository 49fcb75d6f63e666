package models

import (
	"slices"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// Repeater runs the forwards of a model. While texts are written, most are like the one before: the same sequences, as many rows of each,
// and only tokens and positions differ. On a CPU such a forward is done from a tape of the one before, where every layer writes its state
// in place; the results are the same to the bit.
//
// It runs inside mlx.Thread.Do.
type Repeater struct {
	thread *mlx.Thread
	model  Model

	forms   []form // of the forward before; nil where it had what no tape takes
	failed  int    // how often one after the other such a forward could not be recorded
	longest int    // see nn.Batch
	tape    *mlx.Tape
	stores  []*mlx.Array // that the tape writes to
	now     []*mlx.Array // those of the sequences as they are
}

// attempts at a tape: a forward may still have to compute what came before it, such as a state that was taken back.
const attempts = 3

// form is what a part of forwards that are alike has in common.
type form struct {
	seq  *cache.Sequence
	rows int
}

// NewRepeater has nothing to free but by Forget.
func NewRepeater(t *mlx.Thread, m Model) *Repeater { return &Repeater{thread: t, model: m} }

// Forward is that of the model, of a batch of these parts.
func (r *Repeater) Forward(parts ...nn.Part) *mlx.Array {
	forms := formsOf(parts)
	alike := forms != nil && slices.Equal(forms, r.forms)
	if alike && r.tape != nil && r.stands(parts) {
		return r.play(parts)
	}
	r.Forget()
	if !alike {
		r.forms, r.failed = forms, 0
	}
	record := alike && r.failed < attempts && !r.thread.Info().GPU && r.inPlace(parts)
	b := nn.NewBatch(r.thread, parts...)
	hidden := r.model.Forward(b)
	if record {
		r.record(b, hidden)
	}
	return hidden
}

// Forget gives up the tape and what it holds of the sequences: whoever frees one of them calls it first.
func (r *Repeater) Forget() {
	r.tape.Free()
	r.tape = nil
	clear(r.stores)
	clear(r.now)
}

// Repeats tells whether a forward like the last one would be done from a tape.
func (r *Repeater) Repeats() bool { return r.tape != nil }

// formsOf is nil where a part has more than tokens, or rows that are not wanted.
func formsOf(parts []nn.Part) []form {
	forms := make([]form, len(parts))
	for i, p := range parts {
		if p.Shift != 0 || p.Grid[0] != nil || len(p.Vectors) > 0 || !p.All && len(p.Tokens) > 1 {
			return nil
		}
		forms[i] = form{p.Seq, len(p.Tokens)}
	}
	return forms
}

// record evaluates a forward that wrote in place, and keeps how, if it can be done again.
func (r *Repeater) record(b *nn.Batch, hidden *mlx.Array) {
	if r.longest = b.Longest; r.longest != 1 {
		r.tape = mlx.Record(hidden, b.Tokens, b.Positions)
	}
	if r.tape == nil {
		r.failed++
		return
	}
	r.failed = 0
	r.stores = r.stores[:0]
	for _, s := range b.Segments {
		r.stores, _ = s.Seq.InPlace(0, r.stores)
	}
}

// inPlace tells whether a forward would write nowhere but to the arrays that it notes.
func (r *Repeater) inPlace(parts []nn.Part) bool {
	r.now = r.now[:0]
	for _, p := range parts {
		var ok bool
		if r.now, ok = p.Seq.InPlace(len(p.Tokens), r.now); !ok {
			return false
		}
	}
	return true
}

// stands tells whether the tape is right for the next forward: all would be written where it writes.
func (r *Repeater) stands(parts []nn.Part) bool {
	for _, p := range parts {
		if r.longest > 0 && max(p.Text, p.Seq.Offset()+len(p.Tokens)) > r.longest {
			return false
		}
	}
	return r.inPlace(parts) && slices.Equal(r.now, r.stores)
}

func (r *Repeater) play(parts []nn.Part) *mlx.Array {
	hidden := r.tape.Play(nn.Rows(parts))
	for _, p := range parts {
		p.Seq.Advance(len(p.Tokens))
	}
	return hidden
}
