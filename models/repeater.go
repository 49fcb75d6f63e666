package models

import (
	"slices"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// Repeater runs a model's forward passes. During decode most passes resemble the previous one: the same sequences with
// the same numbers of rows, and only tokens and positions differ. On a CPU such a pass is replayed from a tape of the
// previous one if every layer writes its state in place. The results are equal bit for bit.
//
// It runs inside mlx.Thread.Do.
type Repeater struct {
	thread *mlx.Thread
	model  Model

	parts   []partKey // of the previous forward pass; nil if it cannot be recorded
	failed  int       // consecutive failures to record such a pass
	longest int       // see nn.Batch.Longest
	tape    *mlx.Tape
	stores  []*mlx.Array // that the tape writes to
	now     []*mlx.Array // the current stores of the sequences
}

// maxFailures limits the attempts to record a tape. More than one is needed: a pass may include pending work, such as
// rolling back a state.
const maxFailures = 3

// partKey identifies a part of a batch. Passes with equal keys have the same graph.
type partKey struct {
	seq  *cache.Sequence
	rows int
}

// NewRepeater returns a Repeater. It holds nothing that must be freed except by Forget.
func NewRepeater(t *mlx.Thread, m Model) *Repeater { return &Repeater{thread: t, model: m} }

// Staged is a Model of which this rank may have only some layers.
type Staged interface {
	Model
	// Stage returns the rank's place in the pipeline; nil if it has all layers.
	Stage() *nn.Stage
	// Finish returns on rank 0 what Forward returns without a pipeline, for the rows whose output is wanted. Forward
	// returns what a rank has sent, and must be computed before.
	Finish(rows int) *mlx.Array
}

// Forward returns the model's Forward of a batch of the parts. In a pipeline it evaluates that, and returns the hidden
// states on rank 0 only.
func (r *Repeater) Forward(parts ...nn.Part) *mlx.Array {
	out := r.forward(parts)
	m, staged := r.model.(Staged)
	if !staged || m.Stage() == nil {
		return out
	}
	mlx.Eval(out)
	if !m.Stage().IsFirst() {
		return out
	}
	return m.Finish(Wanted(parts))
}

// ForwardUnread is a forward pass whose output nobody reads, such as one over a prompt's first rows. In a pipeline no
// rank waits for those after it.
func (r *Repeater) ForwardUnread(parts ...nn.Part) *mlx.Array {
	r.Forget()
	r.parts = nil
	return r.thread.Result(func() *mlx.Array {
		b := nn.NewBatch(r.thread, parts...)
		b.Unread = true
		return r.model.Forward(b)
	})
}

// Wanted returns the number of rows whose output is wanted of a batch of the parts.
func Wanted(parts []nn.Part) (n int) {
	for _, p := range parts {
		if n++; p.All {
			n += len(p.Tokens) - 1
		}
	}
	return n
}

func (r *Repeater) forward(parts []nn.Part) *mlx.Array {
	keys := keysOf(parts)
	same := keys != nil && slices.Equal(keys, r.parts)
	if same && r.tape != nil && r.tapeApplies(parts) {
		return r.replay(parts)
	}
	r.Forget()
	if !same {
		r.parts, r.failed = keys, 0
	}
	record := same && r.failed < maxFailures && !r.thread.Info().GPU && r.inPlace(parts)
	if !record {
		return Forward(r.thread, r.model, parts...)
	}
	return r.thread.Result(func() *mlx.Array {
		b := nn.NewBatch(r.thread, parts...)
		hidden := r.model.Forward(b)
		r.record(b, hidden)
		return hidden
	})
}

// Forget frees the tape, which holds on to the sequences' stores. Call it before freeing a sequence.
func (r *Repeater) Forget() {
	r.tape.Free()
	r.tape = nil
	clear(r.stores)
	clear(r.now)
}

// Repeats reports whether a forward pass like the last one would be replayed from a tape.
func (r *Repeater) Repeats() bool { return r.tape != nil }

// keysOf returns nil if a part has image data, or rows that are not wanted.
func keysOf(parts []nn.Part) []partKey {
	keys := make([]partKey, len(parts))
	for i, p := range parts {
		if p.Shift != 0 || p.Grid[0] != nil || len(p.Vectors) > 0 || !p.All && len(p.Tokens) > 1 {
			return nil
		}
		keys[i] = partKey{p.Seq, len(p.Tokens)}
	}
	return keys
}

// record evaluates a forward pass that wrote in place, and keeps the tape if it can be replayed.
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

// inPlace reports whether a forward pass would write only to the current stores, which it sets.
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

// tapeApplies reports whether the tape is valid for the next forward pass: the pass writes to the stores that the tape
// writes to.
func (r *Repeater) tapeApplies(parts []nn.Part) bool {
	for _, p := range parts {
		if r.longest > 0 && max(p.Text, p.Seq.Offset()+len(p.Tokens)) > r.longest {
			return false
		}
	}
	return r.inPlace(parts) && slices.Equal(r.now, r.stores)
}

func (r *Repeater) replay(parts []nn.Part) *mlx.Array {
	hidden := r.tape.Play(nn.Rows(parts))
	for _, p := range parts {
		p.Seq.Advance(len(p.Tokens))
	}
	return hidden
}
