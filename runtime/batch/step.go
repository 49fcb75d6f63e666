package batch

import (
	"slices"
	"time"

	"github.com/ingotml/ingot/runtime/draft"
)

// step encodes a picture if one is ready, and otherwise runs one forward pass for the running requests. It sets stalled
// if there is nothing to run. If the pass fails, each of its requests runs its next step alone and without drafts, and
// ends if that fails too.
func (b *batcher) step() {
	if b.encodeNextPicture() {
		return
	}
	plan := b.planStep()
	if len(plan) == 0 { // all running requests wait for their pictures
		b.loop.stalled = true
		return
	}
	prompts := b.drafting.plan(plan)
	start, rows, promptRows := time.Now(), 0, 0
	since := b.lastStepEnd
	if since.IsZero() {
		since = start
	}
	for _, s := range plan {
		rows += s.rows
		if s.g.prefilling() {
			promptRows += s.rows + s.restored
		}
	}
	decoding, first := len(plan)-prompts, startsStream(plan)
	err := b.do(func() error {
		if b.onStep != nil {
			if err := b.onStep(plan); err != nil {
				return err
			}
		}
		draftStart := time.Now()
		b.drafting.propose(plan)
		proposing := time.Since(draftStart)
		b.stepper.run(plan, len(plan) == len(b.running))
		if b.lastStepEnd = time.Now(); prompts == 0 {
			b.drafting.measure(plan, proposing, b.lastStepEnd.Sub(since)-proposing)
		}
		return nil
	})
	if err == nil {
		b.prefill.rate.add(rows, time.Since(start)*time.Duration(b.stepper.passes()))
		if decoding > 0 {
			b.prefill.gap.add(promptRows, decoding, time.Since(since))
		}
	}
	for _, s := range plan {
		switch {
		case s.g.ended: // even if the step failed after that
			b.finish(s.g, nil)
		case err != nil:
			b.recoverFrom(s, len(plan) == 1, err)
		default:
			s.g.retryAlone = false
		}
	}
	if first && err == nil && len(b.running) > 0 && !b.model.Thread.Info().GPU {
		time.Sleep(firstTokenPause)
	}
}

// firstTokenPause is how long the engine pauses after a step with a request's first token. Several threads of two
// processes pass the token on. If the next step began at once, it would occupy all processors, and the kernel would run
// those threads only at its next clock ticks, some 4 ms later. Once per request, the pause costs no throughput.
const firstTokenPause = 500 * time.Microsecond

// startsStream reports whether a planned step samples a request's first token.
func startsStream(plan []batchItem) bool {
	return slices.ContainsFunc(plan, func(s batchItem) bool { return s.wantsToken && s.g.stats.Tokens == 0 })
}

// recoverFrom resets a request after a failed step: it restarts from the prefix cache and runs its next step alone. A
// request that was already alone ends with err, unless drafting may have caused the failure: it then gets another try
// without drafts.
func (b *batcher) recoverFrom(s batchItem, alone bool, err error) {
	g := s.g
	retried := g.retryAlone || b.drafting.neededHiddenStates(g) == draft.NoHiddenStates && s.depth == 0
	fatal := alone && retried || b.ranks != nil // the group has ended
	doErr := b.do(func() error {
		b.stepper.forget()
		g.restart()
		if !fatal {
			g.startSession()
		}
		return nil
	})
	switch {
	case fatal:
		b.finish(g, err)
	case doErr != nil:
		b.finish(g, doErr)
	default:
		g.retryAlone = true
	}
}
