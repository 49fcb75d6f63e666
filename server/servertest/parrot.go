package servertest

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync"
	"testing"

	"github.com/ingotml/ingot/runtime"
)

// Parrot is a model with a given output, which records its requests.
type Parrot struct {
	Says []string
	// Ends and LeftOut are the finish reason and the parts of the format that are not enforced; zero: stop, none.
	Ends    runtime.DoneReason
	LeftOut []string
	End     *runtime.LogProb // of the token after the output; nil: there is none
	fail    error            // returned after the output; without one, instead of queueing the request
	wait    chan struct{}    // received from before the last piece; nil: do not wait
	prefill chan struct{}    // received from before the first piece; nil: do not wait
	done    chan struct{}
	once    sync.Once

	Mu       sync.Mutex
	Requests []runtime.Request
	Left     int // number of requests that were cancelled while waiting

	embedded []runtime.EmbedRequest
}

// ErrBurst makes a parrot panic after its output.
var ErrBurst = errors.New("a map is nil")

// NewParrot returns a parrot that says pieces of text.
func NewParrot(says ...string) *Parrot { return &Parrot{Says: says, done: make(chan struct{})} }

// Done implements pool.Model.
func (p *Parrot) Done() <-chan struct{} { return p.done }

// Close implements pool.Model.
func (p *Parrot) Close() error { p.once.Do(func() { close(p.done) }); return nil }

// PID returns the id of a process that does not exist.
func (p *Parrot) PID() int { return 4711 }

// Generate records the request and says the pieces.
func (p *Parrot) Generate(ctx context.Context, r runtime.Request) iter.Seq2[runtime.Event, error] {
	return func(yield func(runtime.Event, error) bool) {
		p.Mu.Lock()
		p.Requests = append(p.Requests, r)
		p.Mu.Unlock()
		if r.MaxTokens == 13 {
			panic("an index is out of range")
		}
		if refused := p.fail != nil && len(p.Says) == 0; !refused && r.Queued != nil {
			r.Queued()
		}
		if !p.waits(ctx, p.prefill) {
			yield(runtime.Event{}, ctx.Err())
			return
		}
		e := runtime.Event{Stats: runtime.Stats{PromptTokens: len(r.Prompt), PromptTime: 3e9, GenerateTime: 1e9}}
		if r.PromptLogProbs && !p.score(r, e, yield) {
			return
		}
		if r.PromptOnly {
			e.Done = runtime.DoneLength
			yield(e, nil)
			return
		}
		for i, text := range p.Says {
			last := i == len(p.Says)-1
			if last && !p.waits(ctx, p.wait) {
				yield(runtime.Event{}, ctx.Err())
				return
			}
			e.IDs, e.Text = []int32{int32(i)}, text
			if r.LogProbs {
				e.LogProbs = []runtime.LogProb{{ID: int32(i), LogProb: -1, Top: []runtime.TokenProb{{ID: 1022, LogProb: -2}}}}
			}
			e.Stats.Tokens++
			if last && p.fail == nil {
				e.Done, e.LeftOut, e.EndLogProb = cmp.Or(p.Ends, runtime.DoneStop), p.LeftOut, p.End
			}
			if !yield(e, nil) {
				return
			}
		}
		if errors.Is(p.fail, ErrBurst) {
			panic(p.fail)
		}
		if p.fail != nil {
			yield(runtime.Event{}, p.fail)
		}
	}
}

// score gives prompt token i the log-probability -i, in two events.
func (p *Parrot) score(r runtime.Request, e runtime.Event, yield func(runtime.Event, error) bool) bool {
	var logs []runtime.LogProb
	for i, id := range r.Prompt[1:] {
		logs = append(logs, runtime.LogProb{ID: id, LogProb: -float32(i + 1),
			Top: []runtime.TokenProb{{ID: 1022, LogProb: -0.5}}})
	}
	half := len(logs) / 2
	e.PromptLogProbs = logs[:half]
	if half > 0 && !yield(e, nil) {
		return false
	}
	e.PromptLogProbs = logs[half:]
	return half == len(logs) || yield(e, nil)
}

// waits waits for a signal, unless it is nil. It returns false if the request was cancelled meanwhile.
func (p *Parrot) waits(ctx context.Context, signal <-chan struct{}) bool {
	if signal == nil {
		return true
	}
	select {
	case <-signal:
		return true
	case <-ctx.Done():
		p.Mu.Lock()
		p.Left++
		p.Mu.Unlock()
		return false
	}
}

// Last returns the last request.
func (p *Parrot) Last(t *testing.T) runtime.Request {
	t.Helper()
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if len(p.Requests) == 0 {
		t.Fatal("the model got no request")
	}
	return p.Requests[len(p.Requests)-1]
}

// Embed returns vectors with the number of tokens and the first token of each input.
func (p *Parrot) Embed(_ context.Context, r runtime.EmbedRequest) (e runtime.Embeddings, err error) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.embedded = append(p.embedded, r)
	for _, ids := range r.Inputs {
		e.Vectors = append(e.Vectors, []float32{float32(len(ids)), float32(ids[0]), 0.1})
		e.Tokens += len(ids)
	}
	return e, p.fail
}

// LastEmbedded returns the last embedding request.
func (p *Parrot) LastEmbedded(t *testing.T) runtime.EmbedRequest {
	t.Helper()
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if len(p.embedded) == 0 {
		t.Fatal("the model got no request")
	}
	return p.embedded[len(p.embedded)-1]
}
