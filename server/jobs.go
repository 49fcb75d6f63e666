package server

import (
	"context"
	"time"

	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/chat/prompt"
	"github.com/ingotml/ingot/runtime"
)

// job is a generation request to a model.
type job struct {
	model   *model
	request runtime.Request
	reader  prompt.Reader
	calls   int            // tool calls after which the response is complete; 0: no limit
	keep    *time.Duration // how long the model stays loaded afterwards; nil: the server's default
	begun   time.Time
}

// job builds a job. The caller sets keep and begun.
func (s *Server) job(m *model, p *prompt.Prompt, o options, f format, l logProbOptions) (job, error) {
	j := job{model: m, reader: p.Reader}
	j.request = runtime.Request{Prompt: p.IDs, Pictures: p.Pictures, Special: p.Special, Format: f.after(p),
		Draft:    s.opts.Draft,
		LogProbs: l.LogProbs, TopLogProbs: l.TopLogProbs}
	return j, o.request(m.Defaults(), m.Context(), &j.request)
}

// piece is an increment of a response.
type piece struct {
	ids            []int32
	text, thinking string
	calls          []parse.ToolCall
	logProbs       []runtime.LogProb
	stats          runtime.Stats // totals so far
}

// outcome describes a finished response.
type outcome struct {
	done    runtime.DoneReason
	stop    string // the stop text that matched
	stats   runtime.Stats
	calls   int           // number of tool calls
	thought int           // tokens up to the end of thinking
	load    time.Duration // time to load the model
	total   time.Duration

	thinks, answers bool // thinking, or other output, has been seen
}

// run generates a response and passes its pieces to each. The first call comes when generation starts.
func (s *Server) run(ctx context.Context, j job, each func(piece) error) (o outcome, err error) {
	m, left := s.metrics.startResponse(j.model.name(), j.begun), false
	defer func() { m.finish(o.done, left || ctx.Err() != nil) }()
	lease, load, err := s.acquire(ctx, j.model)
	if err != nil {
		return o, err
	}
	defer lease.Release(j.keep)
	o.load = load
	for e, err := range lease.Generate(ctx, j.request) {
		if err != nil {
			return o, err
		}
		m.observe(e)
		o.done, o.stop, o.stats = e.Done, e.Stop, e.Stats
		p := piece{ids: e.IDs, logProbs: e.LogProbs, stats: e.Stats}
		p.add(j.reader.Feed(e.Text))
		if e.Done != "" {
			rest, damage := j.reader.Close()
			p.add(rest)
			if damage != nil {
				s.opts.Log("%s: a malformed part of the response is returned as text: %v", j.model.name(), damage)
			}
		}
		full := o.count(&p, j.calls)
		if err := each(p); err != nil {
			left = true
			return o, err
		}
		if full {
			o.done = runtime.DoneStop
			break
		}
	}
	o.total = time.Since(j.begun)
	return o, nil
}

// count counts a piece. If the number of calls is limited, it drops further ones and reports whether the limit is
// reached.
func (o *outcome) count(p *piece, most int) (full bool) {
	said := p.text != "" || len(p.calls) > 0
	o.thinks = o.thinks || p.thinking != ""
	o.answers = o.answers || said && p.thinking == ""
	if o.thinks && !o.answers {
		o.thought += len(p.ids)
	}
	o.answers = o.answers || said
	if most > 0 && o.calls+len(p.calls) >= most {
		p.calls, full = p.calls[:most-o.calls], true
	}
	o.calls += len(p.calls)
	return full
}

// add adds a parser's events. A malformed call is added as text.
func (p *piece) add(events []parse.Event) {
	for _, e := range events {
		switch e.Kind {
		case parse.Thinking:
			p.thinking += e.Text
		case parse.Call:
			p.calls = append(p.calls, e.Call)
		default:
			p.text += e.Text
		}
	}
}

// empty reports whether a piece has nothing for the client except possibly token ids.
func (p piece) empty() bool {
	return p.text == "" && p.thinking == "" && len(p.calls) == 0 && len(p.logProbs) == 0
}
