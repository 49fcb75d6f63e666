package main

import (
	"context"
	"time"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// scoresJSON has the logits after a prompt, for comparison with another program's.
type scoresJSON struct {
	IDs    []int32   `json:"ids"`
	Scores []float32 `json:"scores"`
}

// scores runs a prompt of random ids.
func (b *bench) scores(ctx context.Context, c command) (any, error) {
	s := scoresJSON{IDs: randomTokens(c.Tokens, b.vocab)}
	err := b.thread.Do(ctx, func() error {
		seq := cache.NewSequence(b.model.Layers())
		defer seq.Free()
		b.thread.Scope(func() {
			hidden := b.model.Forward(nn.NewBatch(b.thread, nn.Part{Seq: seq, Tokens: s.IDs}))
			s.Scores = mlx.AsType(b.model.Head(hidden), mlx.Float32).Float32s()
		})
		return nil
	})
	return s, err
}

// skippedJSON has median prefill times in seconds, of a prefill that needs only the last row's logits.
type skippedJSON struct {
	Last float64 `json:"last"` // unneeded rows are dropped as early as the model allows
	All  float64 `json:"all"`  // all rows run through all layers
}

// skippedRounds is small because a prompt takes seconds.
const skippedRounds = 3

// skipped times a prompt in one chunk, once as a prefill runs it and once with all rows in all layers.
func (b *bench) skipped(ctx context.Context, c command) (any, error) {
	var last, all []float64
	err := b.thread.Do(ctx, func() error {
		ids := randomTokens(c.Tokens, b.vocab)
		for range skippedRounds {
			for _, m := range []struct {
				times *[]float64
				all   bool
			}{{&last, false}, {&all, true}} {
				if err := ctx.Err(); err != nil {
					return err
				}
				*m.times = append(*m.times, b.prompt(ids, m.all))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return skippedJSON{median(last), median(all)}, nil
}

// prompt returns the seconds until the last row's logits.
func (b *bench) prompt(ids []int32, all bool) (seconds float64) {
	seq := cache.NewSequence(b.model.Layers())
	defer seq.Free()
	b.thread.Scope(func() {
		begun := time.Now()
		hidden := b.model.Forward(nn.NewBatch(b.thread, nn.Part{Seq: seq, Tokens: ids, All: all}))
		n := hidden.Dim(0)
		mlx.Eval(b.model.Head(mlx.SliceAxis(hidden, 0, mlx.Range(n-1, n))))
		seconds = time.Since(begun).Seconds()
	})
	return seconds
}
