package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/server/keys"
	"github.com/ingotml/ingot/server/params"
)

// dialoguePriority is the default priority of prompts made from conversations. Other requests have 0.
const dialoguePriority = 1

// Job is a generation request to a model.
type Job struct {
	model   *Model
	Request runtime.Request
	reader  prompt.Reader
	Shift   Shift          // what to do when the context is full
	Calls   int            // tool calls after which the response is complete; 0: no limit
	Keep    *time.Duration // how long the model stays loaded afterwards; nil: the server's default
	Begun   time.Time
}

// NewJob builds a job. The caller sets keep and begun.
func (s *Server) NewJob(m *Model, p *prompt.Prompt, o params.Options, f params.Format, l params.LogProbOptions) (Job,
	error) {
	j := Job{model: m, reader: p.Reader}
	priority := 0
	if p.Dialogue {
		priority = dialoguePriority
	}
	j.Request = runtime.Request{Prompt: p.IDs, Priority: priority,
		Pictures: p.Pictures, Special: p.Special, Format: f.ForPrompt(p),
		Draft:     s.opts.Draft,
		Continues: p.Continues, EndTokens: p.EndTokens,
		LogProbs: l.LogProbs, TopLogProbs: l.TopLogProbs}
	if o.Pin > 0 {
		j.Request.Pins = []runtime.Pin{{Tokens: len(p.IDs), TTL: o.Pin}}
	}
	return j, o.Apply(m.Defaults(), m.Context(), &j.Request)
}

// Piece is an increment of a response. It has thinking, or text, or one call, or none of them: some clients read only
// one of a chunk. The tokens of several pieces that were generated together belong to the first one.
type Piece struct {
	Ids            []int32
	Text, Thinking string
	Calls          []parse.ToolCall
	LogProbs       []runtime.LogProb
	PromptLogProbs []runtime.LogProb
	EndLogProb     *runtime.LogProb // of the token that ended the text
	Stats          runtime.Stats    // totals so far
}

// Outcome describes a finished response.
type Outcome struct {
	Done    runtime.DoneReason
	Stop    string // the stop text that matched
	Stats   runtime.Stats
	LeftOut []string      // what a best effort did not enforce of the format
	Calls   int           // number of tool calls
	Thought int           // tokens up to the end of thinking
	Load    time.Duration // time to load the model
	Total   time.Duration

	thinks, responds bool // thinking, or other output, has been seen
}

// Run generates a response and passes its pieces to each. The first call comes when generation starts.
func (s *Server) Run(ctx context.Context, j Job, each func(Piece) error) (o Outcome, err error) {
	m, left := s.metrics.StartResponse(j.model.Name(), j.Begun), false
	defer func() { m.Finish(o.Done, left || ctx.Err() != nil) }()
	defer s.gate.Yield()()
	within, cancel := runtime.WithDeadline(ctx, j.Request.Deadline, time.Since(j.Begun))
	defer cancel()
	if queued := j.Request.Queued; queued != nil {
		j.Request.Queued = sync.OnceFunc(queued)
	}
	j.Request.Owner = s.cacheOwner(ctx)
	deadline := j.Request.Deadline
	o.Load, err = s.withProcess(within, j.model, j.Keep, func(lease *pool.Lease) (said bool, err error) {
		if deadline > 0 { // the model's process counts from now on
			j.Request.Deadline = max(deadline-time.Since(j.Begun), time.Nanosecond)
		}
		for e, err := range j.generate(within, lease) {
			if err != nil {
				return said, err
			}
			said = true
			m.Observe(e)
			full, err := s.pass(ctx, j, e, &o, each)
			if err != nil {
				left = true
				return said, err
			}
			if full {
				o.Done = runtime.DoneStop
				break
			}
		}
		return said, nil
	})
	if err != nil {
		return o, err
	}
	if f := j.Request.Format; o.Done == runtime.DoneLength && o.Calls > 0 && f.Kind != "" && !f.Optional {
		o.Done = runtime.DoneStop // the format kept room for its end: the calls are complete
	}
	o.Total = time.Since(j.Begun)
	return o, nil
}

// pass passes the pieces of an event to each, and adds them to the outcome. full reports that the response is complete.
func (s *Server) pass(ctx context.Context, j Job, e runtime.Event, o *Outcome, each func(Piece) error) (full bool,
	err error) {
	charge(ctx, o.Stats, e.Stats)
	o.Done, o.Stop, o.Stats, o.LeftOut = e.Done, e.Stop, e.Stats, e.LeftOut
	said := j.reader.Feed(e.Text)
	if e.Done != "" {
		rest, damage := j.reader.Close()
		said = append(said, rest...)
		if damage != nil {
			s.opts.Log("%s: a malformed part of the response is returned as text: %v", j.model.Name(), damage)
		}
	}
	for _, p := range pieces(e, said) {
		full = o.count(p, j.Calls)
		if err := each(p); err != nil || full {
			return full, err
		}
	}
	return false, nil
}

// charge counts the tokens that were computed between two states of a response to the request's key.
func charge(ctx context.Context, before, now runtime.Stats) {
	computed := func(s runtime.Stats) int { return s.PromptTokens - s.CachedTokens }
	keys.From(ctx).Charge(computed(now)-computed(before), now.Tokens-before.Tokens)
}

// count counts a piece, and reports whether it has the last one of a limited number of calls.
func (o *Outcome) count(p Piece, most int) (full bool) {
	o.thinks = o.thinks || p.Thinking != ""
	o.responds = o.responds || p.Text != "" || len(p.Calls) > 0
	if o.thinks && !o.responds {
		o.Thought += len(p.Ids)
	}
	o.Calls += len(p.Calls)
	return most > 0 && o.Calls >= most
}

// pieces divides an event by what the parser found in its text, in that order. There is at least one piece. A malformed
// call is text.
func pieces(e runtime.Event, found []parse.Event) []Piece {
	list := []Piece{{Ids: e.IDs, LogProbs: e.LogProbs, PromptLogProbs: e.PromptLogProbs, EndLogProb: e.EndLogProb,
		Stats: e.Stats}}
	for _, x := range found {
		p := Piece{Text: x.Text, Stats: e.Stats}
		switch x.Kind {
		case parse.Thinking:
			p.Text, p.Thinking = "", x.Text
		case parse.Call:
			p.Text, p.Calls = "", []parse.ToolCall{x.Call}
		}
		switch last := &list[len(list)-1]; {
		case last.kind() == p.kind() && p.Calls == nil, last.kind() == "":
			last.Text, last.Thinking, last.Calls = last.Text+p.Text, last.Thinking+p.Thinking, p.Calls
		case p.kind() != "":
			list = append(list, p)
		}
	}
	return list
}

// kind returns what a piece has for the client.
func (p Piece) kind() string {
	switch {
	case p.Thinking != "":
		return "thinking"
	case p.Text != "":
		return "text"
	case len(p.Calls) > 0:
		return "call"
	}
	return ""
}

// Empty reports whether a piece has nothing for the client except possibly token ids.
func (p Piece) Empty() bool {
	return p.kind() == "" && len(p.LogProbs)+len(p.PromptLogProbs) == 0
}

// atOnce is how many choices of a request run concurrently, so that one request does not fill the model's queue.
const atOnce = 16

// RunAll runs jobs and passes their pieces to each, one at a time. The first error cancels all jobs.
func (s *Server) RunAll(ctx context.Context, jobs []Job, each func(i int, p Piece) error) ([]Outcome, error) {
	all := make([]Outcome, len(jobs))
	if len(jobs) == 1 {
		var err error
		all[0], err = s.Run(ctx, jobs[0], func(p Piece) error { return each(0, p) })
		return all, err
	}
	var mu sync.Mutex
	var panicked any // the panic of a job, which is passed on to the caller
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, j := range jobs {
		g.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					mu.Lock()
					defer mu.Unlock()
					panicked, err = p, errPanicked
				}
			}()
			all[i], err = s.Run(ctx, j, func(p Piece) error {
				mu.Lock()
				defer mu.Unlock()
				return each(i, p)
			})
			return err
		})
	}
	err := g.Wait()
	if panicked != nil {
		panic(panicked)
	}
	return all, err
}

var errPanicked = errors.New("another choice of the request failed")
