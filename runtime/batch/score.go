package batch

import (
	"slices"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/ranks"
	"github.com/ingotml/ingot/runtime/sample"
)

// unscored returns the first position whose row predicts a prompt token that has no log-probability yet, or false if
// none is wanted any more. Rows before it may be restored.
func (g *generation) unscored() (position int, ok bool) {
	return g.scored, g.request.PromptLogProbs && g.scored < len(g.request.Prompt)-1
}

// scoredRows returns the rows of an item, relative to its first one, that predict prompt tokens without a
// log-probability. at is the position of its first row.
func (s *batchItem) scoredRows(at int) (from, to int) {
	first, ok := s.g.unscored()
	if !ok {
		return 0, 0
	}
	to = min(at+s.rows, len(s.g.request.Prompt)-1)
	return min(max(first, at), to) - at, to - at
}

// scores reports whether rows of the item are scored.
func (s *batchItem) scores() bool { return s.scoreFrom < s.scoreTo }

// score computes the log-probabilities of the prompt tokens that the rows of a step predict, and sends them. hidden has
// the rows that forward evaluated. It runs on the engine's thread.
func (e *stepper) score(plan []*batchItem, hidden *mlx.Array) {
	for _, s := range plan {
		if !s.scores() {
			continue
		}
		g := s.g
		first := s.firstSampleRow + 1 - s.rows
		var logs []runtime.LogProb
		next := g.request.Prompt[g.scored+1:][:s.scoreTo-s.scoreFrom]
		rows := make([]int, len(next))
		for i := range rows {
			rows[i] = first + s.scoreFrom + i
		}
		for block := range slices.Chunk(rows, e.scoreRows) {
			e.model.Thread.Scope(func() {
				e.ranks.Head(block)
				logits := ranks.Head(e.model.Target, hidden, block)
				if e.ranks != nil {
					mlx.Eval(logits)
				}
				logs = append(logs, sample.Score(logits, next[len(logs):][:len(block)], g.request.TopLogProbs)...)
			})
		}
		g.scored += len(next)
		g.out.Put(runtime.Event{PromptLogProbs: logs, Stats: g.stats})
	}
}

// endPrompts ends the requests that generate nothing and whose prompt is evaluated.
func endPrompts(plan []batchItem) {
	for _, s := range plan {
		if g := s.g; g.request.PromptOnly && g.pending() == 0 && !g.ended {
			g.ended = g.endPrompt()
		}
	}
}
