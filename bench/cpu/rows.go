package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// checked is the number of rows that op rows compares with one: a token with a draft of seven, or one token of each of
// eight streams.
const checked = 8

// rowsJSON has median times of forward passes in seconds: building the graph, logits of all rows, and their argmax.
type rowsJSON struct {
	One     float64 `json:"one"`     // one row
	Draft   float64 `json:"draft"`   // eight rows of one sequence
	Streams float64 `json:"streams"` // one row of each of eight sequences
}

// rows times forward passes of one row and of eight, interleaved, at the same depth.
func (b *bench) rows(ctx context.Context, c command) (any, error) {
	var one, draft, streams []float64
	err := b.thread.Do(ctx, func() error {
		states := make([]state, checked)
		defer func() {
			for _, s := range states {
				s.free()
			}
		}()
		for i := range states {
			states[i] = b.start(randomTokens(c.Depth, b.vocab))
		}
		ids := randomTokens(checked, b.vocab)
		each := make([]nn.Part, checked)
		for i, s := range states {
			each[i] = nn.Part{Seq: s.seq, Tokens: ids[i : i+1]}
		}
		for range c.Rounds + 1 { // the first is a warm-up
			for _, m := range []struct {
				times  *[]float64
				states []state
				parts  []nn.Part
			}{
				{&one, states[:1], each[:1]},
				{&draft, states[:1], []nn.Part{{Seq: states[0].seq, Tokens: ids, All: true}}},
				{&streams, states, each},
			} {
				if err := ctx.Err(); err != nil {
					return err
				}
				seconds, err := b.timed(m.states, m.parts)
				if err != nil {
					return err
				}
				*m.times = append(*m.times, seconds)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return rowsJSON{median(one[1:]), median(draft[1:]), median(streams[1:])}, nil
}

// state is a sequence, with a snapshot after its prompt if its layers cannot rewind.
type state struct {
	seq   *cache.Sequence
	kept  cache.Snapshots
	depth int
}

// start prefills a prompt.
func (b *bench) start(prompt []int32) state {
	seq := cache.NewSequence(b.model.Layers())
	b.thread.Scope(func() { b.step(nn.Part{Seq: seq, Tokens: prompt}) })
	s := state{seq: seq, depth: len(prompt)}
	if slices.ContainsFunc(b.model.Layers(), func(k cache.Kind) bool { return !k.Whole() && k != cache.None }) {
		s.kept = seq.Snapshot(0)
	}
	return s
}

// back removes a forward pass's tokens. Rewinding keeps the storage in place, as between the steps of a request.
func (s state) back() bool {
	if s.kept == nil {
		return s.seq.Rewind(s.depth)
	}
	return s.seq.Restore(s.kept, s.depth)
}

func (s state) free() {
	if s.seq != nil {
		s.kept.Close()
		s.seq.Free()
	}
}

// timed runs a forward pass and removes its tokens again.
func (b *bench) timed(states []state, parts []nn.Part) (seconds float64, err error) {
	b.thread.Scope(func() {
		begun := time.Now()
		b.step(parts...)
		seconds = time.Since(begun).Seconds()
	})
	for _, s := range states {
		if !s.back() {
			return 0, errors.New("the model's caches do not go back to where they were")
		}
	}
	return seconds, nil
}

// step is one forward pass, including the argmax of each wanted row.
func (b *bench) step(parts ...nn.Part) { b.graph(parts...).ToBytes() }

func (b *bench) graph(parts ...nn.Part) *mlx.Array {
	hidden := b.model.Forward(nn.NewBatch(b.thread, parts...))
	return mlx.ArgMax(mlx.AsType(b.model.Head(hidden), mlx.Float32), -1, false)
}

func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
