package main

import (
	"context"
	"time"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// scoresJSON are the scores that follow a prompt, for comparing them with those of another program.
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

// skippedJSON are the times of a prompt, in seconds, medians: of a model that gives the scores of the last row only.
type skippedJSON struct {
	Last float64 `json:"last"` // rows that nobody asks for leave as early as the model allows
	All  float64 `json:"all"`  // all rows pass all layers
}

// skippedRounds is few: a prompt takes seconds.
const skippedRounds = 3

// skipped times a prompt in one piece, once as a prefill runs it and once with all of its rows up to the last layer.
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

// prompt gives the seconds up to the scores of the last row.
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
