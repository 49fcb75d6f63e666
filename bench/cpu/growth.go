package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// Op growth compares a depth with this share of it, after prefills in chunks of growthChunk tokens.
const (
	growthShare = 16
	growthChunk = 512
)

// growthJSON compares sequences by their depth.
type growthJSON struct {
	Short depthJSON `json:"short"`
	Long  depthJSON `json:"long"`
}

// depthJSON is what a sequence holds, and median seconds of a forward pass of one row.
type depthJSON struct {
	Depth     int     `json:"depth"`
	Fixed     int64   `json:"fixed"`     // bytes of convolutions and recurrences
	Positions int64   `json:"positions"` // bytes of keys and values
	Token     float64 `json:"token"`
	Attention float64 `json:"attention"` // in attention kernels, which read the keys and values
}

// growth measures a sequence at the command's depth and one at a sixteenth of it, whose steps alternate.
func (b *bench) growth(ctx context.Context, c command) (any, error) {
	depths := [2]depthJSON{{Depth: max(c.Depth/growthShare, 1)}, {Depth: c.Depth}}
	err := b.thread.Do(ctx, func() error {
		var times, attention [2][]float64
		var sequences [2]*cache.Sequence
		defer func() {
			for _, s := range sequences {
				if s != nil {
					s.Free()
				}
			}
		}()
		for i, d := range depths {
			sequences[i] = cache.NewSequence(b.model.Layers())
			for chunk := range slices.Chunk(randomTokens(d.Depth, b.vocab), growthChunk) {
				if err := ctx.Err(); err != nil {
					return err
				}
				b.thread.Scope(func() { b.step(nn.Part{Seq: sequences[i], Tokens: chunk}) })
			}
		}
		for n, id := range randomTokens(c.Tokens+1, b.vocab) { // the first is a warm-up
			for i, s := range sequences {
				if err := ctx.Err(); err != nil {
					return err
				}
				b.thread.CPU()
				begun := time.Now()
				b.thread.Scope(func() { b.step(nn.Part{Seq: s, Tokens: []int32{id}}) })
				if n > 0 {
					times[i] = append(times[i], time.Since(begun).Seconds())
					attention[i] = append(attention[i], attending(b.thread.CPU()))
				}
			}
		}
		for i, s := range sequences {
			depths[i].Token, depths[i].Attention = median(times[i]), median(attention[i])
			depths[i].Fixed, depths[i].Positions = held(s)
		}
		return nil
	})
	return growthJSON{depths[0], depths[1]}, err
}

// attending returns the seconds that attention kernels took.
func attending(r mlx.CPUReport) (seconds float64) {
	for kind, t := range r.Nodes {
		if strings.HasPrefix(kind, "attend") {
			seconds += t.Time.Seconds()
		}
	}
	return seconds
}

// held returns the bytes of a sequence's state that are fixed, and those of its keys and values.
func held(s *cache.Sequence) (fixed, positions int64) {
	for _, l := range s.Layers {
		if l == nil {
			continue
		}
		to := &positions
		if _, ok := l.(*cache.State); ok {
			to = &fixed
		}
		for _, a := range l.State() {
			*to += int64(a.Bytes())
		}
	}
	return fixed, positions
}
