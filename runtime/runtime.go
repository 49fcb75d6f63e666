// Package runtime says what a loaded model does: it generates text and computes embeddings. It has the requests,
// events, options and errors that callers and all implementations share. The packages below it do the work.
//
// An [Engine] is a loaded model: a batch.Engine in this process, or a runner.Runner in a child process. Its contract:
//   - Generate may be called from any goroutine. Requests are batched continuously: each step runs one forward pass
//     over the next tokens of all running requests, including chunks of prompts that are still in prefill.
//   - The tokens of a greedy or seeded request do not depend on the other requests in its batch, unless two logits
//     differ only in their last bits (see docs/drafts.md).
//   - A prefix cache may keep the state of finished requests ([Options.PrefixCache]); a later prompt with the same
//     prefix does not evaluate it again.
//   - Errors are delivered in the stream of the request that they belong to. A canceled request takes part in no
//     further step.
package runtime

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/ingotml/ingot/internal/limits/fault"
)

var (
	// ErrPrompt reports a prompt that cannot be run: empty, longer than the context, or with ids outside the vocabulary.
	ErrPrompt = fault.Register(errors.New("bad prompt"), fault.Kind{
		Name: "runtime.ErrPrompt", Means: "the prompt cannot be run",
		Rank: fault.Request + 2, Status: fault.Invalid, Wire: "prompt",
	})
	// ErrNoTokenizer reports an image without a tokenizer: it accepts and returns token ids only.
	ErrNoTokenizer = fault.Register(errors.New("the model has no tokenizer"), fault.Kind{
		Name: "runtime.ErrNoTokenizer", Means: "the model accepts and returns token ids only",
		Rank: fault.Part + 1, Status: fault.Invalid, Wire: "tokenizer",
	})
	// ErrImage reports an image whose contents do not match its configuration.
	ErrImage = fault.Register(errors.New("bad model image"), fault.Kind{
		Name: "runtime.ErrImage", Means: "the image's contents do not match its configuration",
		Rank: fault.Request + 3, Status: fault.Invalid, Wire: "image",
	})
	// ErrMemory reports that a single request needs more memory for its state than all requests may use.
	ErrMemory = fault.Register(errors.New("too little memory for the request"), fault.Kind{
		Name: "runtime.ErrMemory", Means: "a request needs more memory for its state than all requests may use",
		Rank: fault.Resource + 2, Status: fault.Invalid, Code: fault.CodeContext, Wire: "room",
		Advice: "`ingot serve --context TOKENS` allows longer prompts",
	})
	// ErrBusy reports that the queue of a model is full; a later request may succeed.
	ErrBusy = fault.Register(errors.New("too many requests are waiting"), fault.Kind{
		Name: "runtime.ErrBusy", Means: "the queue is full, or memory did not become free in time",
		Rank: fault.Resource + 3, Status: fault.Unavailable, Wire: "busy",
	})
	// ErrRanks reports that the group of ranks that a model is divided over has ended.
	ErrRanks = fault.Register(errors.New("the model's group of ranks has ended"), fault.Kind{
		Name: "runtime.ErrRanks", Means: "a rank of a model that is divided over several has failed, or cannot be reached",
		Rank: fault.Process + 2, Status: fault.Unavailable, Wire: "ranks",
		Remedy: "the log of each rank says why",
	})
)

// Engine is a loaded model.
type Engine interface {
	// Generate continues a prompt. The last event of a stream without an error has a DoneReason.
	Generate(ctx context.Context, r Request) iter.Seq2[Event, error]
	// Close frees the model. Running requests end with an error.
	Close() error
}

// Request describes one generation. With only a prompt set, it decodes greedily to the end of the context.
type Request struct {
	// Prompt holds token ids. Each picture has one image token, or as many as it has vectors.
	Prompt    []int32
	Pictures  []Picture // in the order of their image tokens
	MaxTokens int       // most tokens to generate; <= 0: limited by the context only
	Sampling  Sampling
	Stop      []string // generation ends before the first of these texts
	IgnoreEOS bool     // continue after an end-of-sequence token
	EndTokens []int32  // tokens that end the text like an end-of-sequence token, in addition to the model's
	// Continues says that the text continues the prompt's, so that white space at its start is kept, which the decoders of
	// some tokenizers remove from the start of a text.
	Continues bool
	Special   bool // include special tokens in the text, for callers that parse it
	Draft     Draft

	Format Format // constrains the generated text

	// Priority moves the request forward in the order in which requests are admitted and prefilled: each level counts as
	// 10 s of waiting. Between -MaxPriority and MaxPriority.
	Priority int
	// Deadline bounds the time from the request's arrival to its end; 0: none. A request that cannot have a token by then
	// is refused, and one that is not complete ends, with ErrDeadline.
	Deadline time.Duration
	Pins     []Pin // beginnings of the prompt that the prefix cache evicts last
	// Owner is whose prompt it is: what is kept of it serves requests of the same owner only. The owner prefix.Public is
	// nobody's; what it has evaluated serves all.
	Owner string `json:",omitempty"`

	LogProbs    bool // report the log-probability of each generated token
	TopLogProbs int  // also report this many of the most likely tokens at each position, up to MostTopLogProbs

	// PromptLogProbs reports the log-probability of each prompt token but the first, with TopLogProbs tokens at each
	// position. The whole prompt is evaluated: none of it is restored from the prefix cache.
	PromptLogProbs bool
	PromptOnly     bool // evaluate the prompt and generate nothing: the finish reason is DoneLength

	// Queued, if set, is called when the model has checked the request and put it into its queue: before the first event,
	// by the goroutine that reads the events. It is not called for a request with pictures, which are checked later.
	Queued func() `json:"-"`
}

// MaxPriority bounds the priority of a request.
const MaxPriority = 100

// WantsLogProbs reports whether log-probabilities are reported.
func (r *Request) WantsLogProbs() bool { return r.LogProbs || r.TopLogProbs > 0 }

// DoneReason is the finish reason of a stream.
type DoneReason string

// The finish reasons.
const (
	DoneStop   DoneReason = "stop"   // an end-of-sequence token or a stop text
	DoneLength DoneReason = "length" // MaxTokens or the end of the context
)

// Event is one element of a stream.
type Event struct {
	IDs []int32 // new tokens, without end-of-sequence tokens unless these are ignored
	// Text is the new text, in whole characters. It lags behind IDs while a character or a possible stop text is
	// incomplete.
	Text string

	LogProbs []LogProb // one for each of IDs, if the request wants them
	// PromptLogProbs are those of the next prompt tokens, in order from the second token on. They come before the first
	// generated token.
	PromptLogProbs []LogProb
	// EndLogProb is that of the token that ended the text, which is not among IDs, in the last event; nil: none did, or it
	// is not wanted.
	EndLogProb *LogProb

	Done DoneReason // set in the last event
	Stop string     // in the last event: the stop text that ended the generation
	// LeftOut says, in the last event, what Format.BestEffort did not enforce of the schema, each with its location.
	LeftOut []string
	Stats   Stats // of the request so far
}

// Stats counts the work of one request.
type Stats struct {
	PromptTokens int           // of the whole prompt, including cached ones
	CachedTokens int           // of the prompt, restored from the prefix cache
	PromptTime   time.Duration // from the request's arrival to its first token
	Tokens       int           // generated
	GenerateTime time.Duration // after PromptTime

	// Drafts; those after the end of the text do not count.
	Drafted     int // drafted tokens that the model verified
	Accepted    int // drafted tokens that the model accepted
	TargetSteps int // forward passes that produced at least one token
}
