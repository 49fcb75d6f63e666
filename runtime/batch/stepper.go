package batch

import (
	"slices"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/runtime/draft"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/ranks"
	"github.com/ingotml/ingot/runtime/sample"
)

// stepper evaluates planned steps. All of its methods run on the engine's thread.
type stepper struct {
	model      *load.Model
	forwards   *models.Repeater
	drafting   *drafting
	ranks      *ranks.Leader
	sendsAhead bool // enqueue the next step before the tokens of the last one are read
	unread     bool // nobody read the output of the last step
	scoreRows  int  // rows of a prompt that are scored at a time
}

func newStepper(m *load.Model, d *drafting, l *ranks.Leader) stepper {
	return stepper{
		model: m, forwards: models.NewRepeater(m.Thread, m.Target), drafting: d, ranks: l,
		sendsAhead: m.Thread.Info().GPU && l == nil, // the other ranks need the tokens
		scoreRows:  sample.ScoreRows(int(m.Processor.Config.Facts().Vocab)),
	}
}

// forget drops what is kept of earlier steps, before the state of a sequence is freed.
func (e *stepper) forget() {
	e.ranks.Forget()
	e.forwards.Forget()
}

// run evaluates a step and appends the sampled tokens to their requests. complete says that no request is left out of
// the plan: otherwise that request may join the next step.
func (e *stepper) run(plan []batchItem, complete bool) {
	hidden := e.forward(plan)
	pool(plan, hidden)
	endPrompts(plan)
	samples := takeSamples(plan)
	defer func() { // samples that were not read, after an error
		for _, a := range samples {
			a.Free()
		}
	}()
	if e.sendsAhead && complete {
		e.sendAhead(plan, samples)
	}
	outcomes := make([]sample.Outcome, len(samples))
	for i, a := range samples {
		outcomes[i] = a.Read()
	}
	e.applyResults(plan, hidden, outcomes)
	e.drafting.catchUp(plan)
}

// forward evaluates a plan and starts sampling for the items that want a token. It returns the hidden states of the
// rows that sampling, drafting and pooling need; nil if no item has rows. It runs on the engine's thread.
func (e *stepper) forward(plan []batchItem) (hidden *mlx.Array) {
	var parts []nn.Part
	var evaluated []*batchItem
	row := 0
	for i := range plan {
		s := &plan[i]
		if s.rows == 0 {
			continue
		}
		p := s.g.part(s.rows, s.drafts)
		s.scoreFrom, s.scoreTo = s.scoredRows(s.g.seq.Offset())
		p.All = len(s.drafts) > 0 || e.drafting.neededHiddenStates(s.g) == draft.AllHiddenStates ||
			s.g.pooling.NeedsAllRows() || s.scores()
		wanted := 1
		if p.All {
			wanted = len(p.Tokens)
		}
		s.firstSampleRow = row + wanted - 1 - len(s.drafts)
		row += wanted
		if len(s.drafts) > 0 {
			e.ranks.Begin(s.g.seq)
			s.g.seq.Begin()
		}
		parts, evaluated = append(parts, p), append(evaluated, s)
	}
	if len(parts) > 0 {
		rows := sampledRows(evaluated)
		e.unread = len(rows) == 0 && e.model.Stages != nil && !slices.ContainsFunc(evaluated, e.readsHidden)
		parts = e.ranks.Forward(parts, rows, e.unread)
		if e.unread {
			hidden = e.forwards.ForwardUnread(parts...)
		} else {
			hidden = e.forwards.Forward(parts...)
		}
		e.sample(evaluated, hidden)
		e.score(evaluated, hidden)
	}
	return hidden
}

// readsHidden reports whether the hidden states of an item's rows are kept.
func (e *stepper) readsHidden(s *batchItem) bool {
	return s.scores() || s.g.pooling != nil || e.drafting.neededHiddenStates(s.g) != draft.NoHiddenStates
}

// passes returns how many times as long as this rank's part a step takes until its last rank has computed it, at most:
// nobody waits for an unread step of a pipeline.
func (e *stepper) passes() int {
	if e.unread {
		return max(len(e.model.Stages), 1)
	}
	return 1
}

// sampledRows returns the rows of the hidden states that tokens are sampled from.
func sampledRows(plan []*batchItem) (rows []int) {
	for _, s := range plan {
		if s.wantsToken {
			for i := range len(s.drafts) + 1 {
				rows = append(rows, s.firstSampleRow+i)
			}
		}
	}
	return rows
}

// takeSamples takes the pending sample from each request that wants a token, in the plan's order. The caller frees
// them.
func takeSamples(plan []batchItem) (samples []*sample.Pending) {
	for _, s := range plan {
		if s.wantsToken {
			samples = append(samples, s.g.sample)
			s.g.sample = nil
		}
	}
	return samples
}

// sample starts sampling for the items that want a token. hidden holds the hidden states of the forward pass, which
// firstSampleRow indexes. It also stores the hidden states for drafting and takes snapshots that are due.
func (e *stepper) sample(plan []*batchItem, hidden *mlx.Array) {
	if e.ranks != nil {
		mlx.Eval(hidden) // as the other ranks do, so that all evaluate the operations of the group in one order
	}
	var generations []*generation
	var requests []sample.Request
	for _, s := range plan {
		if len(s.drafts) == 0 { // with drafts, the rows to keep are known after verification
			n := 1
			if e.drafting.neededHiddenStates(s.g) == draft.AllHiddenStates {
				n = s.rows
			}
			e.drafting.keepHidden(s.g, hidden, s.firstSampleRow+1-n, n)
		}
		if !s.wantsToken {
			continue
		}
		generations, requests = append(generations, s.g), append(requests, s.g.sampleRequest(s.drafts, s.Q))
	}
	var wanted []*mlx.Array
	var logits *mlx.Array
	if len(generations) > 0 {
		logits = ranks.Head(e.model.Target, hidden, sampledRows(plan))
		if e.ranks != nil {
			mlx.Eval(logits)
		}
		result := sample.Start(logits, requests)
		for i, g := range generations {
			g.sample = result.Part(i)
		}
		wanted = result.Arrays()
	}
	if len(generations) < len(plan) { // a prompt that samples no token: its state must be evaluated explicitly
		for _, s := range plan {
			wanted = append(wanted, s.g.seq.State()...)
		}
	}
	mlx.AsyncEval(wanted...)
	e.ranks.EndStep(hidden, logits)
	for _, s := range plan {
		s.g.cached.takeSnapshot(s.g.seq.Offset())
	}
	if len(generations) == 0 {
		mlx.Eval(wanted...) // so that the step's time can be measured
	}
}

// applyResults appends the sampled tokens to their requests. For requests with drafts it also commits the accepted rows
// to the KV cache and drops the rest. It runs on the engine's thread.
func (e *stepper) applyResults(plan []batchItem, hidden *mlx.Array, outcomes []sample.Outcome) {
	for i := range plan {
		s := &plan[i]
		if !s.wantsToken {
			continue
		}
		o := outcomes[0]
		outcomes = outcomes[1:]
		n := s.g.take(s.drafts, o)
		if len(s.drafts) == 0 {
			continue
		}
		// Keep the rows of the token before the drafts and of all but the last of the n tokens.
		e.ranks.Commit(s.g.seq, n)
		s.g.seq.Commit(n)
		if !s.g.ended {
			e.drafting.keepHidden(s.g, hidden, s.firstSampleRow, n)
			e.drafting.finishRound(s.g, len(s.drafts), o.Accepted)
		}
	}
}

// sendAhead enqueues the next step on the device before the tokens of this one are read, so that a GPU does not wait
// for the host. If a token turns out to end its request, that work is discarded. sendAhead does nothing if a request is
// in prefill, has only one token left in its budget, or needs the token's value first (for penalties, formats or
// drafts).
func (e *stepper) sendAhead(plan []batchItem, samples []*sample.Pending) {
	var parts []nn.Part
	next := make([]*batchItem, len(plan))
	for i, s := range plan {
		if !s.wantsToken || s.g.budget <= 1 || s.g.retryAlone || s.g.request.Sampling.Penalizes() || s.g.constraint != nil ||
			e.drafting.mayDraft(s) {
			return
		}
		next[i] = &batchItem{g: s.g, rows: 1, wantsToken: true, firstSampleRow: i}
		parts = append(parts, nn.Part{Seq: s.g.seq, Text: len(s.g.request.Prompt),
			Shift: s.g.pictures.prompt.GeneratedShift()})
	}
	e.sample(next, e.model.Thread.Result(func() *mlx.Array {
		return e.model.Target.Forward(nn.NextBatch(sample.Unread(samples), parts...))
	}))
}
