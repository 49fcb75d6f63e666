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
		defer cancel() // a reader who leaves early ends the request
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

// generation is one running request. What is not said to be otherwise belongs to the batcher once the request was added.
type generation struct {
	*Local
	ctx     context.Context
	request Request
	out     *stream.Stream[Event] // anybody's
	freed   chan struct{}         // closed when nothing of it is left on the engine

	seq             *cache.Sequence
	session         *prefix.Session // nil before it is admitted and without a prefix cache
	sampler         sampler
	constraint      *constraint // nil where the answer is free
	forcedPrefix    []int32     // of the tokens, those that every answer begins with and that were not told
	text            *textStream
	pictures        *promptPictures // nil without pictures
	encodedPictures int             // pictures that have been through the tower
	decodeJob       *decodeJob      // the next picture; nil: nobody is at it
	keys            []prefix.Key
	tokens          []int32        // the prompt and what was chosen
	snapshots       []int          // positions of the prompt where the state is kept, ascending, the passed ones taken away
	sample          *pendingSample // says which token comes next, or nil: the device may still be at it
	retryAlone      bool           // its next step runs without others, since one with others failed
	budget          int            // new tokens that may still come
	ended           bool           // nothing more comes
	pooling         *poolState     // of an input whose vector is wanted; nil where an answer is

	draftInputs draftInputs
	draftState  draftState
	started     time.Time
	stats       Stats
}

// begin checks a request and prepares what needs no engine.
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
		return nil, fmt.Errorf("%d likeliest tokens at each place, want 0 to %d: %w", r.TopLogProbs, MostTopLogProbs, ErrSampling)
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

// checkTokens tells what is wrong with a prompt's ids.
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

// wait ends a request whose reader is gone, and waits until nothing of it is left.
func (g *generation) wait(cancel context.CancelFunc) {
	cancel()
	<-g.freed
}

// pending is how many tokens the caches have not seen.
func (g *generation) pending() int { return len(g.tokens) - g.seq.Offset() }

// prefilling tells whether more is to be evaluated than the token that was chosen last.
func (g *generation) prefilling() bool {
	return g.sample == nil && g.pending() > 1 || g.stats.Tokens == 0
}

// part is the request's next n tokens, and drafts after them.
func (g *generation) part(n int, drafts []int32) nn.Part {
	at := g.seq.Offset()
	tokens := slices.Concat(g.tokens[at:at+n], drafts)
	return g.pictures.part(nn.Part{Seq: g.seq, Tokens: tokens, Text: len(g.request.Prompt)}, at)
}

// emit takes a chosen token, and its log-probability if that is wanted, decides what it means for the stream, and tells whether that
// has ended.
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
	case errors.Is(err, grammar.ErrBudget): // what it comes after took too long
		g.budget = 0
		return g.emitToken(token, log)
	}
	g.out.End(err) // a mask forbids that
	return true
}

// append adds a token to what the model reads.
func (g *generation) append(token int32) {
	g.tokens = append(g.tokens, token)
	g.keys = append(g.keys, prefix.Tokens([]int32{token})...)
}

// tell sends a token that was said, and tells whether the stream has ended with it.
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
