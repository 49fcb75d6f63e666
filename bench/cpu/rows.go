package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// checked is the number of rows that op rows compares with one: a token and a draft of seven, or a token of each of
// eight streams.
const checked = 8

// rowsJSON are medians of forwards, in seconds: the graph built, scores of all rows, and their largest.
type rowsJSON struct {
	One     float64 `json:"one"`     // one row
	Draft   float64 `json:"draft"`   // eight rows of one sequence
	Streams float64 `json:"streams"` // one row of each of eight sequences
}

// rows times forwards of one row and of eight in turn, from the same depth.
func (b *bench) rows(ctx context.Context, c command) (any, error) {
	var one, draft, streams []float64
	err := b.thread.Do(ctx, func() error {
		sequences := make([]*cache.Sequence, checked)
		for i := range sequences {
			sequences[i] = cache.NewSequence(b.model.Layers())
			defer sequences[i].Free()
			b.thread.Scope(func() { b.step(nn.Part{Seq: sequences[i], Tokens: randomTokens(c.Depth, b.vocab)}) })
		}
		ids := randomTokens(checked, b.vocab)
		each := make([]nn.Part, checked)
		for i, s := range sequences {
			each[i] = nn.Part{Seq: s, Tokens: ids[i : i+1]}
		}
		for range c.Rounds + 1 { // the first is a rehearsal
			for _, m := range []struct {
				times *[]float64
				parts []nn.Part
			}{
				{&one, each[:1]},
				{&draft, []nn.Part{{Seq: sequences[0], Tokens: ids, All: true}}},
				{&streams, each},
			} {
				if err := ctx.Err(); err != nil {
					return err
				}
				seconds, err := b.timed(c.Depth, m.parts)
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

// timed runs a forward and takes its tokens back.
func (b *bench) timed(depth int, parts []nn.Part) (seconds float64, err error) {
	b.thread.Scope(func() {
		begun := time.Now()
		b.step(parts...)
		seconds = time.Since(begun).Seconds()
	})
	for _, p := range parts {
		if !p.Seq.Rewind(depth) {
			return 0, fmt.Errorf("the model's caches cannot go back to %d tokens", depth)
		}
	}
	return seconds, nil
}

// step is one forward, up to the best token of each wanted row.
func (b *bench) step(parts ...nn.Part) { b.graph(parts...).ToBytes() }

func (b *bench) graph(parts ...nn.Part) *mlx.Array {
	hidden := b.model.Forward(nn.NewBatch(b.thread, parts...))
	return mlx.ArgMax(mlx.AsType(b.model.Head(hidden), mlx.Float32), -1, false)
}

func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
