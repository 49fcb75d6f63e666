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
	thread *mlx.Thread
	cpu    mlx.CPUOptions
	engine runtime.Engine
	// loads another engine over the same image
	load func(ctx context.Context, o runtime.Options) (runtime.Engine, error)
	// the same weights, for what Engine does not expose
	model     models.Model
	weights   *nn.Weights
	vocab     int
	bytes     int64   // of weights read per token
	generated []int32 // tokens generated with drafts, by op spec
}

func (b *bench) close() {
	// An error here means that the engine is gone already.
	_ = b.engine.Close()
	if b.weights != nil {
		_ = b.thread.Do(context.Background(), func() error { b.weights.Free(); return nil })
	}
}

// infoJSON describes the loaded image and engine.
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

// timing is a number of tokens and their seconds.
type timing struct {
	Tokens  int     `json:"tokens"`
	Seconds float64 `json:"seconds"`
}

// decode times the tokens after the first one that follows a prompt of depth tokens.
func (b *bench) decode(ctx context.Context, c command) (any, error) {
	_, decoded, err := b.generate(ctx, c.Depth, c.Tokens, func() error { return nil })
	return decoded, err
}

// prefill times a prompt until its first token.
func (b *bench) prefill(ctx context.Context, c command) (any, error) {
	prompt, _, err := b.generate(ctx, c.Tokens, 0, func() error { return nil })
	return prompt, err
}

// generate prefills a prompt of random ids, calls between, and decodes more tokens one by one.
func (b *bench) generate(ctx context.Context, prompt, more int, between func() error) (prefill, decode timing,
	err error) {
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

// request builds a request for tokens after a prompt of random ids, without drafts.
func (b *bench) request(prompt, tokens int) runtime.Request {
	return runtime.Request{Prompt: randomTokens(prompt, b.vocab), MaxTokens: tokens, IgnoreEOS: true,
		Draft: runtime.Draft{Mode: runtime.DraftOff}}
}

// report returns the kernel statistics since the last call.
func (b *bench) report(ctx context.Context) (r mlx.CPUReport, err error) {
	err = b.thread.Do(ctx, func() error { r = b.thread.CPU(); return nil })
	return r, err
}

// randomTokens returns the same ids on each call.
func randomTokens(n, vocab int) []int32 {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(r.IntN(vocab))
	}
	return ids
}
