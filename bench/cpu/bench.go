package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/runtime"
)

// bench is a loaded image.
type bench struct {
	thread  *mlx.Thread
	cpu     mlx.CPUOptions
	engine  runtime.Engine
	load    func(ctx context.Context, o runtime.Options) (runtime.Engine, error) // another one over the same image
	model   models.Model                                                         // the same weights, for what Engine does not offer
	weights *nn.Weights
	vocab   int
	bytes   int64   // of weights that one token reads
	said    []int32 // with drafts, by op spec
}

func (b *bench) close() {
	// Errors here mean that the engine is gone already.
	_ = b.engine.Close()
	if b.weights != nil {
		_ = b.thread.Do(context.Background(), func() error { b.weights.Free(); return nil })
	}
}

// infoJSON tells what is measured.
type infoJSON struct {
	MLX           string `json:"mlx"`
	Threads       int    `json:"threads"`
	ISA           string `json:"isa"`
	BytesPerToken int64  `json:"bytes_per_token"`
}

func (b *bench) info(ctx context.Context, _ command) (any, error) {
	r, err := b.report(ctx)
	return infoJSON{MLX: b.thread.Info().Version, Threads: r.Threads, ISA: r.ISA, BytesPerToken: b.bytes}, err
}

// timing is tokens in seconds.
type timing struct {
	Tokens  int     `json:"tokens"`
	Seconds float64 `json:"seconds"`
}

// decode times tokens after the first one that follows a prompt of depth tokens.
func (b *bench) decode(ctx context.Context, c command) (any, error) {
	_, decoded, err := b.generate(ctx, c.Depth, c.Tokens, func() error { return nil })
	return decoded, err
}

// prefill times a prompt up to its first token.
func (b *bench) prefill(ctx context.Context, c command) (any, error) {
	prompt, _, err := b.generate(ctx, c.Tokens, 0, func() error { return nil })
	return prompt, err
}

// generate runs a prompt of random ids and then decodes more tokens, one by one; between is called between the two.
func (b *bench) generate(ctx context.Context, prompt, more int, between func() error) (prefill, decode timing, err error) {
	request := b.request(prompt, more+1)
	begun := time.Now()
	n := 0
	for _, err := range b.engine.Generate(ctx, request) {
		if err != nil {
			return prefill, decode, err
		}
		if n == 0 {
			prefill = timing{prompt, time.Since(begun).Seconds()}
			if err := between(); err != nil {
				return prefill, decode, err
			}
			begun = time.Now()
		}
		n++
	}
	if n != more+1 {
		return prefill, decode, fmt.Errorf("%d tokens came, not %d", n, more+1)
	}
	return prefill, timing{more, time.Since(begun).Seconds()}, nil
}

// request wants tokens after a prompt of random ids, one for each step.
func (b *bench) request(prompt, tokens int) runtime.Request {
	return runtime.Request{Prompt: randomTokens(prompt, b.vocab), MaxTokens: tokens, IgnoreEOS: true, Draft: runtime.Draft{Mode: runtime.DraftOff}}
}

// report is what the kernels did since the last report.
func (b *bench) report(ctx context.Context) (r mlx.CPUReport, err error) {
	err = b.thread.Do(ctx, func() error { r = b.thread.CPU(); return nil })
	return r, err
}

// randomTokens gives the same ids each time.
func randomTokens(n, vocab int) []int32 {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(r.IntN(vocab))
	}
	return ids
}
