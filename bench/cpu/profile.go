package main

import (
	"context"
	"time"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// profileJSON breaks down the time of a decoded token, in seconds per token. Wall and Kernels come from the runtime's
// own loop. Build, Wait and Free come from a separate loop that does the same work with the engine idle while Go builds
// the graph.
type profileJSON struct {
	Tokens  int                    `json:"tokens"`
	Wall    float64                `json:"wall"`
	Kernels float64                `json:"kernels"` // inside our kernels; the rest of Wall is overhead
	Nodes   map[string]nodeProfile `json:"nodes"`   // Kernels by kind
	Build   float64                `json:"build"`   // building the graph in Go
	Wait    float64                `json:"wait"`    // evaluation, including kernels
	Free    float64                `json:"free"`    // freeing the graph's arrays
}

type nodeProfile struct {
	Calls   float64 `json:"calls"` // per token
	Seconds float64 `json:"seconds"`
}

// profile decodes at a depth and breaks down a token's time.
func (b *bench) profile(ctx context.Context, c command) (any, error) {
	_, decoded, err := b.generate(ctx, c.Depth, c.Tokens, func() error { _, err := b.report(ctx); return err })
	if err != nil {
		return nil, err
	}
	r, err := b.report(ctx)
	if err != nil {
		return nil, err
	}
	n := float64(c.Tokens)
	p := profileJSON{Tokens: c.Tokens, Wall: decoded.Seconds / n, Nodes: map[string]nodeProfile{}}
	for kind, t := range r.Nodes {
		p.Nodes[kind] = nodeProfile{float64(t.Calls) / n, t.Time.Seconds() / n}
		p.Kernels += t.Time.Seconds() / n
	}
	var build, wait, free time.Duration
	err = b.thread.Do(ctx, func() error {
		seq := cache.NewSequence(b.model.Layers())
		defer seq.Free()
		b.thread.Scope(func() { b.step(nn.Part{Seq: seq, Tokens: randomTokens(c.Depth, b.vocab)}) })
		for _, id := range randomTokens(c.Tokens, b.vocab) {
			if err := ctx.Err(); err != nil {
				return err
			}
			var begun time.Time
			lap := func(d *time.Duration) { now := time.Now(); *d += now.Sub(begun); begun = now }
			b.thread.Scope(func() {
				begun = time.Now()
				token := b.graph(nn.Part{Seq: seq, Tokens: []int32{id}})
				lap(&build)
				mlx.Eval(token)
				lap(&wait)
			})
			lap(&free)
		}
		return nil
	})
	p.Build, p.Wait, p.Free = build.Seconds()/n, wait.Seconds()/n, free.Seconds()/n
	return p, err
}
