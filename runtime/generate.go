package runtime

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/cache/prefix"
	"github.com/ingotml/ingot/grammar"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/runtime/internal/stream"
)

// Generate implements Engine.
func (l *Local) Generate(ctx context.Context, r Request) iter.Seq2[Event, error] {
	if err := l.checkNoVideo(r.Prompt); err != nil {
		return func(yield func(Event, error) bool) { yield(Event{}, err) }
	}
	return l.generate(ctx, r)
}

func (l *Local) generate(ctx context.Context, r Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // a caller that stops reading cancels the request
		g, err := l.begin(ctx, r)
		if err != nil {
			yield(Event{}, err)
			return
		}
		if err := l.batcher.add(g); err != nil {
			yield(Event{}, err)
			return
		}
		defer g.wait(cancel)
		var last Stats
		err = g.out.Each(ctx, func(e Event) bool {
			last = e.Stats
			return yield(e, nil)
		})
		if err != nil {
			yield(Event{Stats: last}, err)
		}
	}
}

// generation is one running request. Unless noted, its fields are owned by the batcher once the request is added.
type generation struct {
	*Local
	ctx     context.Context
	request Request
	out     *stream.Stream[Event] // safe for concurrent use
	freed   chan struct{}         // closed when the request's engine memory is freed

	seq             *cache.Sequence
	session         *prefix.Session // in the prefix cache; nil before admission and without a cache
	sampler         sampler
	constraint      *constraint // enforces the format; nil without one
	forcedPrefix    []int32     // leading tokens that the format forces; in tokens already, not emitted yet
	text            *textStream
	pictures        *promptPictures // nil without pictures
	encodedPictures int             // pictures that the vision tower has encoded
	decodeJob       *decodeJob      // decodes the next picture; nil if none is running
	keys            []prefix.Key    // of tokens
	tokens          []int32         // the prompt and the generated tokens
	snapshots       []int           // prompt positions at which to take a snapshot, ascending, without passed ones
	sample          *pendingSample  // the next token, which the device may still be computing; nil if none
	retryAlone      bool            // run the next step alone and without drafts, because the last one failed
	budget          int             // tokens that may still be generated
	ended           bool            // the last event was sent
	pooling         *poolState      // of an embedding input; nil for a generation

	draftInputs draftInputs
	draftState  draftState
	started     time.Time
	stats       Stats
}

// begin validates a request and prepares everything that does not need the engine.
func (l *Local) begin(ctx context.Context, r Request) (*generation, error) {
	started := time.Now()
	facts := l.config.Facts()
	limit := int(facts.Context)
	if len(r.Prompt) >= limit {
		return nil, fmt.Errorf("the prompt has %d tokens, the model's context %d: %w", len(r.Prompt), limit, ErrPrompt)
	}
	if err := l.checkTokens(r.Prompt); err != nil {
		return nil, err
	}
	if err := r.Sampling.check(); err != nil {
		return nil, err
	}
	if r.TopLogProbs < 0 || r.TopLogProbs > MostTopLogProbs {
		return nil, fmt.Errorf("top_logprobs is %d: must be between 0 and %d: %w", r.TopLogProbs, MostTopLogProbs,
			ErrSampling)
	}
	if err := r.Draft.check(); err != nil {
		return nil, err
	}
	placed, err := l.placePictures(ctx, r.Prompt, r.Pictures, limit)
	if err != nil {
		return nil, err
	}
	if placed != nil {
		r.Prompt = placed.expanded
	}
	maxTokens := l.batcher.memory.tokens(limit)
	if maxTokens <= len(r.Prompt) {
		return nil, l.batcher.memory.promptError(len(r.Prompt))
	}
	g := &generation{
		Local:    l,
		ctx:      ctx,
		request:  r,
		out:      stream.New[Event](),
		freed:    make(chan struct{}),
		seq:      cache.NewSequence(l.kinds),
		sampler:  sampler{Sampling: r.Sampling, seed: rand.Uint64(), history: slices.Clone(r.Prompt)},
		text:     newTextStream(l.tok, r.Stop, r.Special),
		pictures: placed,
		keys:     placed.keys(r.Prompt),
		tokens:   slices.Clone(r.Prompt),
		budget:   maxTokens - len(r.Prompt),
		started:  started,
		stats:    Stats{PromptTokens: len(r.Prompt)},
	}
	if seed := r.Sampling.Seed; seed != nil && *seed >= 0 {
		g.sampler.seed = uint64(*seed)
	}
	if r.MaxTokens > 0 {
		g.budget = min(g.budget, r.MaxTokens)
	}
	if g.constraint, err = l.constrain(ctx, r, g.budget); err != nil {
		return nil, err
	}
	g.addForcedPrefix()
	return g, nil
}

// checkTokens returns an error if a prompt is empty or has ids outside the vocabulary.
func (l *Local) checkTokens(prompt []int32) error {
	if len(prompt) == 0 {
		return fmt.Errorf("the prompt is empty: %w", ErrPrompt)
	}
	vocab := l.config.Facts().Vocab
	for i, id := range prompt {
		if id < 0 || int64(id) >= vocab {
			return fmt.Errorf("token %d of the prompt is %d, the vocabulary has %d: %w", i, id, vocab, ErrPrompt)
		}
	}
	return nil
}

// wait cancels a request whose caller has stopped reading, and waits until its engine memory is freed.
func (g *generation) wait(cancel context.CancelFunc) {
	cancel()
	<-g.freed
}

// pending returns the number of tokens that are not in the KV cache yet.
func (g *generation) pending() int { return len(g.tokens) - g.seq.Offset() }

// prefilling reports whether the request evaluates its prompt, or its earlier tokens again after a restart, rather than
// only the token sampled last.
func (g *generation) prefilling() bool {
	return g.sample == nil && g.pending() > 1 || g.stats.Tokens == 0
}

// part returns the request's next n tokens, followed by drafts, as input of a forward pass.
func (g *generation) part(n int, drafts []int32) nn.Part {
	at := g.seq.Offset()
	tokens := slices.Concat(g.tokens[at:at+n], drafts)
	return g.pictures.part(nn.Part{Seq: g.seq, Tokens: tokens, Text: len(g.request.Prompt)}, at)
}

// emit appends a sampled token to the request and sends it, after the forced prefix if this is the first token. log is
// nil if log-probabilities are not wanted. It reports whether the stream has ended.
func (g *generation) emit(token int32, log *LogProb) (ended bool) {
	if g.stats.Tokens == 0 && g.stats.PromptTime == 0 {
		g.stats.PromptTime = time.Since(g.started)
	}
	for len(g.forcedPrefix) > 0 {
		first := g.forcedPrefix[0]
		g.forcedPrefix = g.forcedPrefix[1:]
		if g.emitToken(first, nil) {
			return true
		}
	}
	if !g.request.IgnoreEOS && slices.Contains(g.eos, token) {
		g.append(token)
		return g.done(Event{Text: g.text.flush()}, DoneStop)
	}
	g.append(token)
	g.sampler.history = append(g.sampler.history, token)
	g.budget--
	err := g.constraint.accept(token, g.budget)
	if g.constraint != nil && g.constraint.inactive {
		g.constraint = nil
	}
	switch {
	case err == nil:
		return g.emitToken(token, log)
	case errors.Is(err, grammar.ErrBudget): // the format starts here and does not fit into the remaining budget
		g.budget = 0
		return g.emitToken(token, log)
	}
	g.out.End(err) // unreachable: masks allow only tokens that the constraint accepts
	return true
}

// append adds a token to the sequence that the model evaluates.
func (g *generation) append(token int32) {
	g.tokens = append(g.tokens, token)
	g.keys = append(g.keys, prefix.Tokens([]int32{token})...)
}

// emitToken sends an event for a token and reports whether the stream has ended with it.
func (g *generation) emitToken(token int32, log *LogProb) (ended bool) {
	g.stats.Tokens++
	e := Event{IDs: []int32{token}}
	if log != nil {
		e.LogProbs = []LogProb{*log}
	}
	var stopped bool
	e.Text, stopped = g.text.next(token)
	if stopped {
		return g.done(e, DoneStop)
	}
	if len(g.forcedPrefix) == 0 {
		reason, over := g.constraint.ended(g.budget)
		if !over && g.budget == 0 {
			reason, over = DoneLength, true
		}
		if over {
			e.Text += g.text.flush()
			return g.done(e, reason)
		}
	}
	e.Stats = g.timed()
	g.out.Put(e)
	return false
}

func (g *generation) done(e Event, reason DoneReason) bool {
	e.Done, e.Stop = reason, g.text.matched
	e.Stats = g.timed()
	g.out.Put(e)
	g.out.End(nil)
	return true
}

func (g *generation) timed() Stats {
	g.stats.GenerateTime = time.Since(g.started) - g.stats.PromptTime
	return g.stats
}
