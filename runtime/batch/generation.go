package batch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/constraint"
	"github.com/ingotml/ingot/runtime/draft"
	"github.com/ingotml/ingot/runtime/embed"
	"github.com/ingotml/ingot/runtime/internal/stream"
	"github.com/ingotml/ingot/runtime/ranks"
	"github.com/ingotml/ingot/runtime/sample"
)

// generation is one running request. Unless noted, its fields are owned by the batcher once the request is added.
type generation struct {
	ctx     context.Context
	request runtime.Request
	out     *stream.Stream[runtime.Event] // safe for concurrent use
	freed   chan struct{}                 // closed when the request's engine memory is freed

	tokens   []int32 // the prompt and the generated tokens
	seq      *cache.Sequence
	ranks    *ranks.Leader
	prefixes *prefixes // nil: it does not use the prefix cache
	cached   cachedState
	pictures requestPictures
	pooling  *embed.Vector // of an embedding input; nil for a generation

	sampler      *sample.Sampler        // nil for an embedding input
	sample       *sample.Pending        // the next token, which the device may still be computing; nil if none
	constraint   *constraint.Constraint // enforces the format; nil without one
	forcedPrefix []int32                // leading tokens that the format forces; in tokens already, not emitted yet
	text         *textStream
	EOS          []int32
	budget       int // tokens that may still be generated
	scored       int // positions whose row has given the log-probability of the next prompt token

	overlaps []overlap   // what its prompt shares with requests that ran when it was admitted
	leader   *generation // the request whose prefill it waits for, see followLeaders; nil: none

	draft draft.Text
	depth draft.DepthState

	retryAlone bool // run the next step alone and without drafts, because the last one failed
	ended      bool // the last event was sent
	started    time.Time
	admitted   time.Time // last; zero before
	stats      runtime.Stats
}

func newGeneration(ctx context.Context, r runtime.Request) *generation {
	return &generation{ctx: ctx, request: r, out: stream.New[runtime.Event](), freed: make(chan struct{})}
}

// begin validates a request and prepares everything that does not need the engine.
func (e *Engine) begin(ctx context.Context, r runtime.Request) (*generation, error) {
	started := time.Now()
	if err := e.model.Processor.CheckHead(); err != nil {
		return nil, err
	}
	facts := e.model.Processor.Config.Facts()
	limit, next := int(facts.Context), 1 // the next token needs a position too
	if r.PromptOnly {
		next = 0
	}
	if len(r.Prompt)+next > limit {
		return nil, fmt.Errorf("the prompt has %d tokens, the model's context %d: %w", len(r.Prompt), limit,
			runtime.ErrPrompt)
	}
	if err := e.checkTokens(r.Prompt); err != nil {
		return nil, err
	}
	if err := r.Sampling.Check(); err != nil {
		return nil, err
	}
	if r.TopLogProbs < 0 || r.TopLogProbs > runtime.MostTopLogProbs {
		return nil, fmt.Errorf("top_logprobs is %d: must be between 0 and %d: %w", r.TopLogProbs, runtime.MostTopLogProbs,
			runtime.ErrSampling)
	}
	if err := r.Draft.Check(); err != nil {
		return nil, err
	}
	if err := r.CheckUrgency(); err != nil {
		return nil, err
	}
	if err := r.CheckPins(); err != nil {
		return nil, err
	}
	length := len(r.Prompt)
	placed, err := e.model.Pictures.Place(ctx, r.Prompt, r.Pictures, limit)
	if err != nil {
		return nil, err
	}
	if placed != nil {
		r.Prompt = placed.Tokens
	}
	maxTokens := e.batcher.memory.tokens(limit)
	if maxTokens < len(r.Prompt)+next {
		return nil, e.batcher.memory.promptError(len(r.Prompt))
	}
	g := newGeneration(ctx, r)
	g.seq = cache.NewSequence(e.model.Kinds)
	g.ranks, g.prefixes, g.EOS = e.ranks, e.prefixes, e.model.Processor.EOS
	g.sampler = sample.New(r.Sampling, slices.Clone(r.Prompt))
	g.text = newTextStream(e.model.Processor.Tokenizer(), r.Stop, r.Special)
	if r.Continues {
		g.text.follow(r.Prompt)
	}
	g.pictures.prompt = placed
	g.cached.owner, g.cached.keys = r.Owner, placed.Keys(r.Prompt)
	for _, p := range r.Pins { // pictures have grown since; most come before the end of a pin
		g.cached.pins = append(g.cached.pins, runtime.Pin{Tokens: p.Tokens + len(r.Prompt) - length, TTL: p.TTL})
	}
	g.tokens = slices.Clone(r.Prompt)
	g.budget = maxTokens - len(r.Prompt)
	g.started, g.stats.PromptTokens = started, len(r.Prompt)
	if r.MaxTokens > 0 {
		g.budget = min(g.budget, r.MaxTokens)
	}
	if r.PromptOnly {
		g.budget = 0
		return g, nil
	}
	if g.constraint, err = e.formats.Constrain(ctx, r, g.budget); err != nil {
		return nil, err
	}
	g.addForcedPrefix()
	return g, nil
}

// checkTokens returns an error if a prompt is empty or has ids outside the vocabulary.
func (e *Engine) checkTokens(prompt []int32) error {
	if len(prompt) == 0 {
		return fmt.Errorf("the prompt is empty: %w", runtime.ErrPrompt)
	}
	vocab := e.model.Processor.Config.Facts().Vocab
	for i, id := range prompt {
		if id < 0 || int64(id) >= vocab {
			return fmt.Errorf("token %d of the prompt is %d, the vocabulary has %d: %w", i, id, vocab, runtime.ErrPrompt)
		}
	}
	return nil
}

// addForcedPrefix appends the forced prefix to the prompt, so that prefill includes it. emit sends it before the first
// sampled token.
func (g *generation) addForcedPrefix() {
	for _, id := range g.constraint.Prefix(g.budget) {
		if g.constraint.Accept(id, g.budget-1) != nil {
			return
		}
		g.append(id)
		g.sampler.AddForced(id)
		g.budget--
		g.forcedPrefix = append(g.forcedPrefix, id)
	}
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
	return g.pictures.prompt.Part(nn.Part{Seq: g.seq, Tokens: tokens, Text: len(g.request.Prompt)}, at)
}
