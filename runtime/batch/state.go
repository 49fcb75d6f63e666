package batch

import (
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/sample"
)

// need returns the size of a request's state when it has evaluated all of its tokens and the given number more.
func (g *generation) need(m *memory, more int) int64 {
	rows := 1
	if g.request.Draft.Mode != runtime.DraftOff {
		rows += runtime.MaxDraft
	}
	if g.prefilling() {
		rows = m.rows
	}
	return m.shape.Bytes(len(g.tokens)+more, rows)
}

// sampleRequest returns the request's part of a step's sampling. drafts must satisfy its format.
func (g *generation) sampleRequest(drafts []int32, q []*mlx.Array) sample.Request {
	a := sample.Request{Sampler: g.sampler, Drafts: drafts, Q: q, TopLogProbs: -1}
	if g.request.WantsLogProbs() {
		a.TopLogProbs = g.request.TopLogProbs
	}
	if g.constraint != nil {
		a.Masks = g.constraint.Masks(drafts, g.budget)
	}
	return a
}

// free releases a request's engine memory and hands its state to the prefix cache, or parks it. It runs on the engine's
// thread.
func (g *generation) free(park bool) {
	g.sample.Free()
	g.sample = nil
	if !park || !g.prefixes.park(g) {
		g.cached.store()
		g.freeSequence()
	}
	g.pictures.prompt.Free()
	g.freeDraft()
}

// freeSequence frees the sequence, on all ranks. It runs on the engine's thread.
func (g *generation) freeSequence() {
	g.ranks.Free(g.seq)
	g.seq.Free()
}

// freeDraft frees what the drafter keeps, on all ranks. It runs on the engine's thread.
func (g *generation) freeDraft() {
	g.ranks.FreeText(&g.draft)
	g.draft.Free()
}

// pause frees a preempted request's sequence and hands its state to the prefix cache. It runs on the engine's thread.
func (g *generation) pause() {
	g.pictures.stop()
	g.cached.store()
	g.dropState()
}

// restart discards the sequence's state, because its position is undefined after a failure, and leaves the prefix
// cache's session without storing it. All tokens are evaluated again. It runs on the engine's thread.
func (g *generation) restart() {
	g.cached.leave()
	g.dropState()
}

// dropState frees the sequence and discards a pending sample, which will be drawn again.
func (g *generation) dropState() {
	g.sample.Free()
	g.sample = nil
	g.freeSequence()
	g.freeDraft()
	g.pooling.Reset()
	if g.sampler != nil {
		g.sampler.Rewind(len(g.tokens) - len(g.request.Prompt))
	}
}
