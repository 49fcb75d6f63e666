package batch

import (
	"errors"
	"slices"
	"time"

	"github.com/ingotml/ingot/grammar"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/sample"
)

// take appends the accepted drafts and the token after them to the request, until its text ends, and returns how many
// of them it appended. Tokens that the format forces next are appended too, but not counted.
func (g *generation) take(drafts []int32, o sample.Outcome) int {
	g.stats.TargetSteps++
	for i, token := range drafts[:o.Accepted] {
		g.stats.Drafted++
		g.stats.Accepted++
		if g.ended = g.emit(token, o.LogProb(i)); g.ended {
			return i + 1
		}
	}
	g.stats.Drafted += len(drafts) - o.Accepted
	g.ended = g.emit(o.Next, o.LogProb(o.Accepted)) || g.emitForced()
	return o.Accepted + 1
}

// emitForced emits the tokens that the format forces next, and reports whether the stream has ended.
func (g *generation) emitForced() (ended bool) {
	for _, id := range slices.Clone(g.constraint.Forced(g.budget)) {
		g.sampler.Skip()
		if g.emit(id, nil) {
			return true
		}
	}
	return false
}

// emit appends a sampled token to the request and sends it, after the forced prefix if this is the first token. log is
// nil if log-probabilities are not wanted. It reports whether the stream has ended.
func (g *generation) emit(token int32, log *runtime.LogProb) (ended bool) {
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
	if ids := g.constraint.Instead(token); len(ids) > 0 {
		for i, id := range ids {
			if i > 0 {
				g.sampler.Skip()
			}
			if g.emit(id, nil) {
				return true
			}
		}
		return false
	}
	if g.ends(token) {
		g.append(token)
		return g.done(runtime.Event{Text: g.text.flush(), EndLogProb: log}, runtime.DoneStop)
	}
	g.append(token)
	g.sampler.Add(token)
	g.budget--
	err := g.constraint.Accept(token, g.budget)
	if g.constraint.Over() {
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

// ends reports whether a token ends the text.
func (g *generation) ends(token int32) bool {
	return !g.request.IgnoreEOS && (slices.Contains(g.EOS, token) || slices.Contains(g.request.EndTokens, token))
}

// append adds a token to the sequence that the model evaluates.
func (g *generation) append(token int32) {
	g.tokens = append(g.tokens, token)
	g.cached.add(token)
}

// emitToken sends an event for a token and reports whether the stream has ended with it.
func (g *generation) emitToken(token int32, log *runtime.LogProb) (ended bool) {
	g.stats.Tokens++
	e := runtime.Event{IDs: []int32{token}}
	if log != nil {
		e.LogProbs = []runtime.LogProb{*log}
	}
	var stopped bool
	e.Text, stopped = g.text.next(token)
	if stopped {
		return g.done(e, runtime.DoneStop)
	}
	if len(g.forcedPrefix) == 0 {
		reason, over := g.constraint.Ended(g.budget)
		if !over && g.budget == 0 {
			reason, over = runtime.DoneLength, true
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

// endPrompt ends a request that generates nothing, after its prompt was evaluated.
func (g *generation) endPrompt() (ended bool) {
	g.stats.PromptTime = time.Since(g.started)
	return g.done(runtime.Event{}, runtime.DoneLength)
}

func (g *generation) done(e runtime.Event, reason runtime.DoneReason) bool {
	e.Done, e.Stop, e.LeftOut = reason, g.text.matched, g.constraint.LeftOut()
	e.Stats = g.timed()
	g.out.Put(e)
	g.out.End(nil)
	return true
}

func (g *generation) timed() runtime.Stats {
	g.stats.GenerateTime = time.Since(g.started) - g.stats.PromptTime
	return g.stats
}
