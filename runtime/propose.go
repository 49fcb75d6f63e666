package runtime

import (
	"github.com/ingotml/ingot/mlx"
)

// proposer guesses what comes next. It runs on the engine's thread. What it keeps of a request lies in the request's drafting.
type drafter interface {
	// reads says of which rows that the model evaluates it wants the hidden states.
	neededHiddenStates() hiddenStates
	// propose sets the drafts of each step of a round, at most as many as its depth.
	propose(round []*batchItem)
	// follow lets it read what the model has read of requests, where that saves time later.
	catchUp(of []*generation)
	// judged ends a round for a request, of whose drafts the first accepted ones have become its tokens.
	finishRound(g *generation, accepted int)
}

// reading is the rows whose hidden states a proposer wants.
type hiddenStates int

const (
	noHiddenStates  hiddenStates = iota
	lastHiddenState              // the one from which a token was chosen
	allHiddenStates
)

// guesser asks a function.
type funcDrafter func(tokens []int32, n int) []int32

func (funcDrafter) neededHiddenStates() hiddenStates { return noHiddenStates }
func (funcDrafter) catchUp([]*generation)            {}
func (funcDrafter) finishRound(*generation, int)     {}
func (f funcDrafter) propose(round []*batchItem) {
	for _, s := range round {
		s.drafts = f(s.g.tokens, s.depth)
	}
}

// textual drafts from a request's own text.
type ngramDrafter struct{}

func (ngramDrafter) neededHiddenStates() hiddenStates { return noHiddenStates }
func (ngramDrafter) catchUp([]*generation)            {}
func (ngramDrafter) finishRound(*generation, int)     {}
func (ngramDrafter) propose(round []*batchItem) {
	for _, s := range round {
		s.drafts = s.g.draftInputs.ngrams.lookup(s.g.tokens, s.depth)
	}
}

// newProposer picks what drafts for a model.
func (l *Local) newDrafter(o DraftOptions) drafter {
	switch {
	case o.Guess != nil:
		return funcDrafter(o.Guess)
	case l.draft != nil:
		return newModelDrafter(l)
	}
	return ngramDrafter{}
}

// propose lets those draft who are to in this step, and keeps what can be used.
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
		if s.drafts = s.g.allowedDrafts(s.drafts); len(s.drafts) == 0 && n > 0 { // the round ends before it began
			b.drafter.finishRound(s.g, 0)
			b.depths.addResult(&s.g.draftState, n, 0)
		}
	}
}

// draftState is what a request's drafts are made from.
type draftInputs struct {
	ngrams ngrams
	hidden hiddenRows
	cache  draftCache
}

// free gives back what is on the engine.
func (d *draftInputs) free() {
	d.hidden.free()
	d.cache.free()
}

// heldRows are hidden states that the model gave for the positions [from, to) of a sequence.
type hiddenRows struct {
	pieces   []*mlx.Array // [n, hidden] each, kept
	from, to int
}

// add notes the rows of the positions that end before to. What does not follow the rows before takes their place.
func (h *hiddenRows) add(x *mlx.Array, to int) {
	if from := to - x.Dim(0); from != h.to || len(h.pieces) == 0 {
		h.free()
		h.from = from
	}
	h.pieces, h.to = append(h.pieces, mlx.Keep(x)), to
}

// of gives the rows of the positions [from, to), which are all there.
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

// drop forgets the rows before a position.
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
