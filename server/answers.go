package server

import (
	"context"
	"time"

	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/talk"
)

// job is a request to a model.
type job struct {
	model   *model
	request runtime.Request
	reader  talk.Reader
	calls   int            // of tools, after which the answer is complete; 0: as many as the model makes
	keep    *time.Duration // how long the model stays afterwards; nil: the server's
	begun   time.Time
}

// job puts a request together; how long its model stays and when it began are the caller's to say.
func (s *Server) job(m *model, p *talk.Prompt, o options, f format, l logProbOptions) (job, error) {
	j := job{model: m, reader: p.Reader}
	j.request = runtime.Request{Prompt: p.IDs, Pictures: p.Pictures, Special: p.Special, Format: f.after(p), Draft: s.opts.Draft,
		LogProbs: l.LogProbs, TopLogProbs: l.TopLogProbs}
	return j, o.request(m, &j.request)
}

// piece is a part of what a model says.
type piece struct {
	ids            []int32
	text, thinking string
	calls          []parse.ToolCall
	logProbs       []runtime.LogProb
	stats          runtime.Stats // of the answer so far
}

// outcome is how an answer ended.
type outcome struct {
	done    runtime.DoneReason
	stop    string // the stop text that was reached
	stats   runtime.Stats
	calls   int           // of tools
	thought int           // tokens up to the end of thinking
	load    time.Duration // until the model was there
	total   time.Duration

	thinks, answers bool // what came by now
}

// run has the model answer, and hands what it says to each, the first time when it begins.
func (s *Server) run(ctx context.Context, j job, each func(piece) error) (o outcome, err error) {
	watch, left := s.metrics.watch(j.model.name(), j.begun), false
	defer func() { watch.ended(o.done, left || ctx.Err() != nil) }()
	lease, load, err := s.lend(ctx, j.model)
	if err != nil {
		return o, err
	}
	defer lease.Release(j.keep)
	o.load = load
	for e, err := range lease.Generate(ctx, j.request) {
		if err != nil {
			return o, err
		}
		watch.saw(e)
		o.done, o.stop, o.stats = e.Done, e.Stop, e.Stats
		p := piece{ids: e.IDs, logProbs: e.LogProbs, stats: e.Stats}
		p.add(j.reader.Feed(e.Text))
		if e.Done != "" {
			rest, damage := j.reader.Close()
			p.add(rest)
			if damage != nil {
				s.opts.Log("%s: a part of an answer is given as text: %v", j.model.name(), damage)
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

// count counts a piece. With a bound on calls it leaves out those beyond, and tells whether there are as many.
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

// add sorts what a parser found. The text of a damaged call is all that there is of it.
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

// empty tells whether a client would notice nothing, but for ids.
func (p piece) empty() bool {
	return p.text == "" && p.thinking == "" && len(p.calls) == 0 && len(p.logProbs) == 0
}
