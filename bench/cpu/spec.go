package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ingotml/ingot/runtime"
)

// specJSON compares the same number of tokens, without and with drafts.
type specJSON struct {
	Plain    timing `json:"plain"`
	Draft    timing `json:"draft"`
	Drafted  int    `json:"drafted"`
	Accepted int    `json:"accepted"`
	Steps    int    `json:"target_steps"`
}

// streamPrompt is the length of the prompt of op spec.
const streamPrompt = 16

// specTries bounds the search for a text that the model reproduces with drafts.
const specTries = 64

// spec times a request without drafts, and with drafts that cost nothing and are right with the command's probability.
// In a random model two tokens are often nearly equally likely, and a step of several rows may pick the other one. So
// only a text that the model reproduces with itself as the draft counts.
func (b *bench) spec(ctx context.Context, c command) (any, error) {
	k := &known{right: c.Right}
	e, err := b.load(ctx, runtime.Options{Draft: runtime.DraftOptions{Guess: k.guess}})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	r := b.request(streamPrompt, c.Tokens+1)
	plain, generated, _, err := text(ctx, e, r)
	if err != nil {
		return nil, err
	}
	if len(b.generated) == len(generated) {
		generated = b.generated
	}
	r.Draft = runtime.Draft{Mode: runtime.DraftFixed, N: c.Drafts}
	for range specTries {
		k.text = slices.Concat(r.Prompt, generated)
		draft, again, stats, err := text(ctx, e, r)
		if err != nil {
			return nil, err
		}
		if slices.Equal(generated, again) {
			b.generated = generated
			return specJSON{plain, draft, stats.Drafted, stats.Accepted, stats.TargetSteps}, nil
		}
		generated = again
	}
	return nil, fmt.Errorf("no text of %d tokens was reproduced in %d tries", c.Tokens, specTries)
}

// known drafts from a known text.
type known struct {
	text  []int32
	right float64
}

// guess drafts the tokens that follow. Whether a draft is wrong depends only on its position.
func (k *known) guess(tokens []int32, n int) []int32 {
	drafts := slices.Clone(k.text[len(tokens):min(len(tokens)+n, len(k.text))])
	for i := range drafts {
		if rand.New(rand.NewPCG(3, uint64(len(tokens)+i))).Float64() >= k.right {
			drafts[i] ^= 1
		}
	}
	return drafts
}

// text times the tokens of a request after the first one.
func text(ctx context.Context, e runtime.Engine, r runtime.Request) (after timing, generated []int32,
	stats runtime.Stats, err error) {
	var begun time.Time
	for event, err := range e.Generate(ctx, r) {
		if err != nil {
			return after, generated, stats, err
		}
		generated, stats = append(generated, event.IDs...), event.Stats
		if begun.IsZero() {
			begun = time.Now()
		}
	}
	return timing{len(generated) - 1, time.Since(begun).Seconds()}, generated, stats, nil
}
