package runtime

import (
	"github.com/ingotml/ingot/mlx"
)

// drafter proposes tokens. It runs on the engine's thread. Its state for each request is in generation.draftInputs.
type drafter interface {
	// neededHiddenStates returns which hidden states of the target the drafter needs.
	neededHiddenStates() hiddenStates
	// propose sets the drafts of each item, at most as many as its depth.
	propose(round []*batchItem)
	// catchUp may evaluate tokens that the target has evaluated already, where that saves time later.
	catchUp(of []*generation)
	// finishRound ends the round that propose started for a request. accepted is the number of drafts that became tokens;
	// the drafts after them were rejected.
	finishRound(g *generation, accepted int)
}

// hiddenStates selects the rows whose hidden states a drafter needs.
type hiddenStates int

const (
	noHiddenStates  hiddenStates = iota
	lastHiddenState              // of the row from which the last token was sampled
	allHiddenStates
)

// funcDrafter drafts with a function; see DraftOptions.Guess.
type funcDrafter func(tokens []int32, n int) []int32

func (funcDrafter) neededHiddenStates() hiddenStates { return noHiddenStates }
func (funcDrafter) catchUp([]*generation)            {}
func (funcDrafter) finishRound(*generation, int)     {}
func (f funcDrafter) propose(round []*batchItem) {
	for _, s := range round {
		s.drafts = f(s.g.tokens, s.depth)
	}
}

// ngramDrafter looks n-grams up in the request's own text.
type ngramDrafter struct{}

func (ngramDrafter) neededHiddenStates() hiddenStates { return noHiddenStates }
func (ngramDrafter) catchUp([]*generation)            {}
func (ngramDrafter) finishRound(*generation, int)     {}
func (ngramDrafter) propose(round []*batchItem) {
	for _, s := range round {
		s.drafts = s.g.draftInputs.ngrams.lookup(s.g.tokens, s.depth)
	}
}

// newDrafter returns the drafter of the model.
func (l *Local) newDrafter(o DraftOptions) drafter {
	switch {
	case o.Guess != nil:
		return funcDrafter(o.Guess)
	case l.draft != nil:
		return newModelDrafter(l)
	}
	return ngramDrafter{}
}

// propose runs the drafter for the items with a draft depth, and discards drafts beyond the depth, outside the
// vocabulary or outside the request's format.
func (b *batcher) propose(plan []batchItem) {
	var round []*batchItem
	for i := range plan {
		if plan[i].depth > 0 {
			round = append(round, &plan[i])
		}
	}
	if len(round) == 0 {
		return
	}
	b.drafter.propose(round)
	vocab := b.l.config.Facts().Vocab
	for _, s := range round {
		s.drafts = s.drafts[:min(len(s.drafts), s.depth)]
		n := len(s.drafts)
		for i, id := range s.drafts {
			if id < 0 || int64(id) >= vocab {
				s.drafts = s.drafts[:i]
				break
			}
		}
		if s.drafts = s.g.allowedDrafts(s.drafts); len(s.drafts) == 0 && n > 0 { // no draft is left to verify
			b.drafter.finishRound(s.g, 0)
			b.depths.addResult(&s.g.draftState, n, 0)
		}
	}
}

// draftInputs is the drafter's state of one request.
type draftInputs struct {
	ngrams ngrams
	hidden hiddenRows
	cache  draftCache
}

// free releases the engine memory.
func (d *draftInputs) free() {
	d.hidden.free()
	d.cache.free()
}

// hiddenRows holds the target's hidden states at positions [from, to) of a sequence.
type hiddenRows struct {
	pieces   []*mlx.Array // [n, hidden] each, kept
	from, to int
}

// add stores rows that end at position to. They extend the stored rows if they follow them, and replace them otherwise.
func (h *hiddenRows) add(x *mlx.Array, to int) {
	if from := to - x.Dim(0); from != h.to || len(h.pieces) == 0 {
		h.free()
		h.from = from
	}
	h.pieces, h.to = append(h.pieces, mlx.Keep(x)), to
}

// slice returns the rows of positions [from, to), which must be stored.
func (h *hiddenRows) slice(from, to int) *mlx.Array {
	x := h.pieces[0]
	if len(h.pieces) > 1 {
		x = mlx.Concatenate(0, h.pieces...)
	}
	if from == h.from && to == h.to {
		return x
	}
	return mlx.SliceAxis(x, 0, mlx.Range(from-h.from, to-h.from))
}

// dropBefore frees the rows before a position.
func (h *hiddenRows) dropBefore(before int) {
	if before <= h.from {
		return
	}
	if before >= h.to {
		h.free()
		return
	}
	rest := mlx.Keep(h.slice(before, h.to))
	to := h.to
	h.free()
	h.pieces, h.from, h.to = []*mlx.Array{rest}, before, to
}

func (h *hiddenRows) free() {
	mlx.Free(h.pieces...)
	*h = hiddenRows{}
}
