// Package runtime runs models: it loads an image from the store into the engine, generates text from token ids, and
// verifies that what it computes is what the reference computes.
//
// An [Engine] is one loaded model behind one request interface, which will be the same in this process and across a
// child's socket. Generate may be called from many goroutines: requests run together, each step one forward over what all
// of them need next, with a share for prompts that are still being read. What a greedy or seeded request gives does not depend
// on its company. State of past requests may be kept ([Options.PrefixCache]), so that what begins alike is not evaluated
// again. Errors at any time travel in the stream, one request's are not another's, and a cancelled request takes part in no further step.
package runtime

import (
	"context"
	"errors"
	"iter"
	"time"
)

var (
	// ErrPrompt says that a prompt cannot be run: empty, longer than the context, or with ids outside the vocabulary.
	ErrPrompt = errors.New("bad prompt")
	// ErrNoTokenizer says that an image takes and gives token ids only.
	ErrNoTokenizer = errors.New("the model has no tokenizer")
	// ErrImage says that an image is not what its own configuration describes.
	ErrImage = errors.New("bad model image")
)

// Engine is a loaded model.
type Engine interface {
	// Generate continues a prompt. The last event of a stream without an error has a DoneReason.
	Generate(ctx context.Context, r Request) iter.Seq2[Event, error]
	// Close frees the model. Running requests end with an error.
	Close() error
}

// Request is what to generate. A zero value but for the prompt is a greedy continuation to the end of the context.
type Request struct {
	Prompt    []int32   // token ids, taken as they are; an image token for each picture, or as many as it has vectors
	Pictures  []Picture // in the order of their places
	MaxTokens int       // new tokens; <= 0 is what the context leaves
	Sampling  Sampling
	Stop      []string // generation ends before the first of these texts
	IgnoreEOS bool     // go on after an end-of-sequence token
	Special   bool     // special tokens are in the text, as what parses an answer needs them
	Draft     Draft

	Format Format // what the answer has to look like

	LogProbs    bool // events have the log-probabilities of their tokens
	TopLogProbs int  // and of so many likeliest tokens at each place, up to MostTopLogProbs
}

func (r *Request) wantsLogProbs() bool { return r.LogProbs || r.TopLogProbs > 0 }

// DoneReason is why a stream ended.
type DoneReason string

// The reasons.
const (
	DoneStop   DoneReason = "stop"   // an end-of-sequence token or a stop text
	DoneLength DoneReason = "length" // MaxTokens or the end of the context
)

// Event is one step of a stream.
type Event struct {
	IDs  []int32 // new tokens; an end-of-sequence token is not among them unless it is ignored
	Text string  // new text, whole characters only; tokens may wait for the rest of a character or a stop text

	LogProbs []LogProb // one for each of IDs where the request wants them

	Done  DoneReason // set in the last event
	Stop  string     // in the last event: the one of the request's stop texts that was reached
	Stats Stats      // of the request so far
}

// Stats count a request.
type Stats struct {
	PromptTokens int           // all of the prompt, cached ones included
	CachedTokens int           // of the prompt, not evaluated again
	PromptTime   time.Duration // from the start to the end of the prefill
	Tokens       int           // generated
	GenerateTime time.Duration // after the prefill

	// Of drafts. None counts that comes after the end of the text.
	Drafted     int // tokens that the model was asked to judge
	Accepted    int // of those, tokens that it would have said
	TargetSteps int // forwards that chose at least one token
}
