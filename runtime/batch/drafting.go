package batch

import (
	"time"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/draft"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/ranks"
	"github.com/ingotml/ingot/runtime/sample"
)

// drafting decides how many tokens each request of a step drafts, and has them drafted.
type drafting struct {
	drafter draft.Drafter
	ranks   *ranks.Leader
	depths  draft.Depths
	vocab   int64
}

func newDrafting(m *load.Model, l *ranks.Leader, o runtime.DraftOptions) *drafting {
	d := draft.New(m, o)
	if o.Guess == nil {
		d = l.Drafter(d)
	}
	return &drafting{drafter: d, ranks: l, vocab: m.Processor.Config.Facts().Vocab}
}

// drawsDrafts reports whether the request's drafts are drawn from the draft's distribution. A format would
// reject many drawn drafts.
func (g *generation) drawsDrafts() bool { return g.constraint == nil && g.sampler.DrawsDrafts() }

// draftText returns the request's text for the drafter.
func (g *generation) draftText() *draft.Text {
	g.draft.Tokens, g.draft.Target = g.tokens, g.seq
	return &g.draft
}

// plan sets the draft depth of each item. A step generates one token more than it drafts, so the depth stays
// below the request's token budget. It returns the number of items in prefill.
func (d *drafting) plan(plan []batchItem) (prompts int) {
	var items []*batchItem
	var requests []draft.DepthRequest
	for i := range plan {
		s := &plan[i]
		g := s.g
		if g.prefilling() {
			prompts++
		}
		if g.request.Draft.Mode == runtime.DraftOff || g.retryAlone || g.prefilling() || s.rows != 1 || !s.wantsToken {
			continue
		}
		w := draft.DepthRequest{
			State: &g.depth, MaxTokens: min(g.budget-1, runtime.MaxDraft), Fixed: g.request.Draft.Mode == runtime.DraftFixed,
		}
		if w.Fixed {
			w.MaxTokens = min(w.MaxTokens, g.request.Draft.N)
		}
		if w.MaxTokens > 0 {
			items, requests = append(items, s), append(requests, w)
		}
	}
	if len(items) == 0 {
		return prompts
	}
	d.depths.Plan(len(plan)-prompts, requests)
	for _, s := range items {
		s.depth = s.g.depth.Depth
	}
	return prompts
}

// propose runs the drafter for the items with a draft depth, and discards drafts beyond the depth, outside the
// vocabulary or outside the request's format. It runs on the engine's thread.
func (d *drafting) propose(plan []batchItem) {
	var items []*batchItem
	var round []*draft.Item
	for i := range plan {
		s := &plan[i]
		if s.depth > 0 {
			items = append(items, s)
			row := sample.DraftRow{Sampler: s.g.sampler, Drawn: s.g.drawsDrafts()}
			round = append(round, &draft.Item{Text: s.g.draftText(), Row: row, Depth: s.depth})
		}
	}
	if len(round) == 0 {
		return
	}
	d.drafter.Propose(round)
	for i, s := range items {
		s.drafts, s.Q = round[i].Drafts, round[i].Q
		s.drafts = s.drafts[:min(len(s.drafts), s.depth)]
		n := len(s.drafts)
		for i, id := range s.drafts {
			if id < 0 || int64(id) >= d.vocab {
				s.drafts = s.drafts[:i]
				break
			}
		}
		s.drafts = s.g.constraint.Allowed(s.drafts, s.g.budget)
		if len(s.drafts) == 0 && n > 0 { // no draft is left to verify
			d.finishRound(s.g, n, 0)
		}
	}
}

// finishRound ends a round of a request that drafted tokens.
func (d *drafting) finishRound(g *generation, drafted, accepted int) {
	d.drafter.FinishRound(&g.draft, accepted)
	d.depths.AddResult(&g.depth, drafted, accepted)
}

// catchUp lets the draft model prefill what the target has evaluated. It runs on the engine's thread.
func (d *drafting) catchUp(plan []batchItem) {
	var texts []*draft.Text
	for _, s := range plan {
		if g := s.g; !g.ended && !g.retryAlone && g.request.Draft.Mode != runtime.DraftOff {
			texts = append(texts, g.draftText())
		}
	}
	d.drafter.CatchUp(texts)
}

// neededHiddenStates returns which hidden states of the request's rows its drafts need.
func (d *drafting) neededHiddenStates(g *generation) draft.HiddenStates {
	if g.request.Draft.Mode == runtime.DraftOff || g.retryAlone {
		return draft.NoHiddenStates
	}
	r := d.drafter.NeededHiddenStates()
	if r == draft.LastHiddenState && g.request.Draft.Mode == runtime.DraftAuto && !d.depths.MayDraft(&g.depth) {
		return draft.NoHiddenStates
	}
	return r
}

// keepHidden stores the hidden states from which the request's next tokens are drafted: n rows of hidden from first on,
// which end at the sequence's last position. It runs on the engine's thread.
func (d *drafting) keepHidden(g *generation, hidden *mlx.Array, first, n int) {
	states := d.neededHiddenStates(g)
	if states == draft.NoHiddenStates {
		return
	}
	if states == draft.LastHiddenState {
		first, n = first+n-1, 1
	}
	d.ranks.KeepHidden(&g.draft, first, first+n, g.seq.Offset(), states == draft.LastHiddenState)
	if n < hidden.Dim(0) {
		hidden = mlx.SliceAxis(hidden, 0, mlx.Range(first, first+n))
	}
	g.draft.KeepHidden(hidden, g.seq.Offset(), states == draft.LastHiddenState)
}

// mayDraft reports whether the item drafts in this step, so that its next position is not known yet, or may draft in
// the next one.
func (d *drafting) mayDraft(s batchItem) bool {
	switch {
	case len(s.drafts) > 0:
		return true
	case s.g.request.Draft.Mode == runtime.DraftOff || s.g.budget <= 2:
		return false
	}
	return s.g.request.Draft.Mode == runtime.DraftFixed || d.depths.MayDraft(&s.g.depth)
}

// measure records the timing of a step without prefill: the time for drafting, and the remaining time since the
// previous step ended.
func (d *drafting) measure(plan []batchItem, proposing, running time.Duration) {
	rows, drafted, deepest := 0, 0, 0
	for _, s := range plan {
		if s.rows == 0 {
			return // sent ahead: the device started before this step was timed
		}
		rows += s.rows + len(s.drafts)
		if n := len(s.drafts); n > 0 {
			drafted, deepest = drafted+1, max(deepest, n)
		}
	}
	d.depths.AddStep(len(plan), rows, running)
	if drafted > 0 {
		d.depths.AddDraft(len(plan), drafted, deepest, proposing)
	}
}
