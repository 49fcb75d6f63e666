package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ingotml/ingot/runtime"
)

// specJSON is a text as long, plain and with drafts.
type specJSON struct {
	Plain    timing `json:"plain"`
	Draft    timing `json:"draft"`
	Drafted  int    `json:"drafted"`
	Accepted int    `json:"accepted"`
	Steps    int    `json:"target_steps"`
}

// specTries is how often op spec looks for a text that drafting says.
const specTries = 64

// spec times a request without drafts, and with some that cost nothing and of which each is right with the probability that the command
// says. A random model often has two tokens that are all but equally likely, and then says another one in a step of several rows: what
// counts is a text that is said with itself as the draft.
func (b *bench) spec(ctx context.Context, c command) (any, error) {
	k := &known{right: c.Right}
	e, err := b.load(ctx, runtime.Options{Draft: runtime.DraftOptions{Guess: k.guess}})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	r := b.request(streamPrompt, c.Tokens+1)
	plain, said, _, err := text(ctx, e, r)
	if err != nil {
		return nil, err
	}
	if len(b.said) == len(said) {
		said = b.said
	}
	r.Draft = runtime.Draft{Mode: runtime.DraftFixed, N: c.Drafts}
	for range specTries {
		k.text = slices.Concat(r.Prompt, said)
		draft, again, stats, err := text(ctx, e, r)
		if err != nil {
			return nil, err
		}
		if slices.Equal(said, again) {
			b.said = said
			return specJSON{plain, draft, stats.Drafted, stats.Accepted, stats.TargetSteps}, nil
		}
		said = again
	}
	return nil, fmt.Errorf("in %d tries no text of %d tokens was said twice", specTries, c.Tokens)
}

// known drafts from a text that it knows.
type known struct {
	text  []int32
	right float64
}

// guess drafts what follows the tokens. Whether a draft is wrong depends on its place alone.
func (k *known) guess(tokens []int32, n int) []int32 {
	drafts := slices.Clone(k.text[len(tokens):min(len(tokens)+n, len(k.text))])
	for i := range drafts {
		if rand.New(rand.NewPCG(3, uint64(len(tokens)+i))).Float64() >= k.right {
			drafts[i] ^= 1
		}
	}
	return drafts
}

// text times the tokens of a request after its first one.
func text(ctx context.Context, e runtime.Engine, r runtime.Request) (after timing, said []int32, stats runtime.Stats, err error) {
	var begun time.Time
	for event, err := range e.Generate(ctx, r) {
		if err != nil {
			return after, said, stats, err
		}
		said, stats = append(said, event.IDs...), event.Stats
		if begun.IsZero() {
			begun = time.Now()
		}
	}
	return timing{len(said) - 1, time.Since(begun).Seconds()}, said, stats, nil
}
