package runtime

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// prefillChunk is the most rows of a prompt that one forward takes, so that others get their turn.
const prefillChunk = 2048

// Generate implements Engine.
func (l *Local) Generate(ctx context.Context, r Request) iter.Seq2[Event, error] {
	if err := l.refuseVideo(r.Prompt); err != nil {
		return func(yield func(Event, error) bool) { yield(Event{}, err) }
	}
	return l.generate(ctx, r)
}

func (l *Local) generate(ctx context.Context, r Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		g, err := l.begin(ctx, r)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer g.free()
		for {
			e, err := g.step(ctx)
			if err != nil {
				yield(Event{Stats: g.stats}, err)
				return
			}
			if !yield(e, nil) || e.Done != "" {
				return
			}
		}
	}
}

// generation is one running request.
type generation struct {
	*Local
	request Request
	seq     *cache.Sequence
	sampler sampler
	text    *textStream
	show    *pictured  // nil without pictures
	encoded bool       // they have been through the tower
	pending []int32    // tokens that the caches have not seen
	chosen  *mlx.Array // the token that comes next, or nil: the device may still be at it
	budget  int        // new tokens that may still come
	started time.Time
	stats   Stats
}

func (l *Local) begin(ctx context.Context, r Request) (*generation, error) {
	started := time.Now()
	facts := l.config.Facts()
	limit := int(facts.Context)
	switch {
	case len(r.Prompt) == 0:
		return nil, fmt.Errorf("the prompt is empty: %w", ErrPrompt)
	case len(r.Prompt) >= limit:
		return nil, fmt.Errorf("the prompt has %d tokens, the model's context %d: %w", len(r.Prompt), limit, ErrPrompt)
	}
	for i, id := range r.Prompt {
		if id < 0 || int64(id) >= facts.Vocab {
			return nil, fmt.Errorf("token %d of the prompt is %d, the vocabulary has %d: %w", i, id, facts.Vocab, ErrPrompt)
		}
	}
	if err := r.Sampling.check(); err != nil {
		return nil, err
	}
	show, err := l.picture(ctx, r.Prompt, r.Pictures, limit)
	if err != nil {
		return nil, err
	}
	if show != nil {
		r.Prompt = show.prompt
	}
	g := &generation{
		Local:   l,
		request: r,
		seq:     cache.NewSequence(l.model.Layers()),
		sampler: sampler{Sampling: r.Sampling, seed: rand.Uint64(), history: slices.Clone(r.Prompt)},
		text:    newTextStream(l.tok, r.Stop, r.Special),
		show:    show,
		pending: r.Prompt,
		budget:  limit - len(r.Prompt),
		started: started,
		stats:   Stats{PromptTokens: len(r.Prompt)},
	}
	if seed := r.Sampling.Seed; seed != nil && *seed >= 0 {
		g.sampler.seed = uint64(*seed)
	}
	if r.MaxTokens > 0 {
		g.budget = min(g.budget, r.MaxTokens)
	}
	return g, nil
}

// step gives the next token.
//
// While a GPU computes a token, the next step is built upon it unread and sent after it, so that the GPU does not wait
// for the host. Where the token ends the stream, that step was for nothing; penalties need its value first.
func (g *generation) step(ctx context.Context) (Event, error) {
	if !g.encoded {
		if err := g.see(ctx, g.show); err != nil {
			return Event{}, err
		}
		g.encoded = true
	}
	for len(g.pending) > prefillChunk {
		if err := g.do(ctx, func() error {
			g.forward(g.batch(g.pending[:prefillChunk]), false)
			return nil
		}); err != nil {
			return Event{}, err
		}
		g.pending = g.pending[prefillChunk:]
	}
	var token int32
	if err := g.do(ctx, func() error {
		if len(g.pending) > 0 {
			g.forward(g.batch(g.pending), true)
			g.pending = nil
		}
		chosen := g.chosen
		defer mlx.Free(chosen)
		g.chosen = nil
		if g.thread.Info().GPU && g.budget > 1 && !g.sampler.penalizes() {
			g.forward(nn.NextBatch(g.seq, chosen, g.show.next()), true)
		}
		token = int32(chosen.Int())
		return nil
	}); err != nil {
		return Event{}, err
	}
	if g.stats.Tokens == 0 {
		g.stats.PromptTime = time.Since(g.started)
	}
	return g.emit(token), nil
}

// batch is the request's next tokens.
func (g *generation) batch(tokens []int32) *nn.Batch {
	part := nn.Part{Seq: g.seq, Tokens: tokens, Text: len(g.request.Prompt)}
	return nn.NewBatch(g.thread, g.show.part(part, g.seq.Offset()))
}

// forward advances the caches by a batch and, unless rows of the prompt are still to come, begins to choose a token.
func (g *generation) forward(b *nn.Batch, choose bool) {
	hidden := g.model.Forward(b)
	if !choose {
		mlx.Eval(g.seq.State()...)
		return
	}
	g.chosen = mlx.Keep(g.sampler.next(g.model.Head(hidden)))
	mlx.AsyncEval(g.chosen)
}

// emit decides what a chosen token means for the stream.
func (g *generation) emit(token int32) Event {
	if !g.request.IgnoreEOS && slices.Contains(g.eos, token) {
		return g.done(Event{Text: g.text.flush()}, DoneStop)
	}
	g.sampler.history = append(g.sampler.history, token)
	if g.chosen == nil {
		g.pending = []int32{token}
	}
	g.stats.Tokens++
	g.budget--
	e := Event{IDs: []int32{token}}
	var stopped bool
	e.Text, stopped = g.text.next(token)
	switch {
	case stopped:
		return g.done(e, DoneStop)
	case g.budget == 0:
		e.Text += g.text.flush()
		return g.done(e, DoneLength)
	}
	e.Stats = g.timed()
	return e
}

func (g *generation) done(e Event, reason DoneReason) Event {
	e.Done = reason
	e.Stats = g.timed()
	return e
}

func (g *generation) timed() Stats {
	g.stats.GenerateTime = time.Since(g.started) - g.stats.PromptTime
	return g.stats
}

// free gives the caches back, also after a cancelled request.
func (g *generation) free() {
	// An error here means that the engine is gone, and the memory with it.
	_ = g.thread.Do(context.Background(), func() error {
		mlx.Free(g.chosen)
		g.show.free()
		g.seq.Free()
		return nil
	})
}
