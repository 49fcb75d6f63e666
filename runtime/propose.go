package runtime

import (
	"github.com/ingotml/ingot/mlx"
)

// proposer guesses what comes next. It runs on the engine's thread. What it keeps of a request lies in the request's drafting.
type proposer interface {
	// reads says of which rows that the model evaluates it wants the hidden states.
	reads() reading
	// propose sets the drafts of each step of a round, at most as many as its depth.
	propose(round []*stepped)
	// follow lets it read what the model has read of requests, where that saves time later.
	follow(of []*generation)
	// judged ends a round for a request, of whose drafts the first accepted ones have become its tokens.
	judged(g *generation, accepted int)
}

// reading is the rows whose hidden states a proposer wants.
type reading int

const (
	readsNothing reading = iota
	readsLast            // the one from which a token was chosen
	readsAll
)

// guesser asks a function.
type guesser func(tokens []int32, n int) []int32

func (guesser) reads() reading          { return readsNothing }
func (guesser) follow([]*generation)    {}
func (guesser) judged(*generation, int) {}
func (f guesser) propose(round []*stepped) {
	for _, s := range round {
		s.drafts = f(s.g.tokens, s.depth)
	}
}

// textual drafts from a request's own text.
type textual struct{}

func (textual) reads() reading          { return readsNothing }
func (textual) follow([]*generation)    {}
func (textual) judged(*generation, int) {}
func (textual) propose(round []*stepped) {
	for _, s := range round {
		s.drafts = s.g.drafting.ngrams.lookup(s.g.tokens, s.depth)
	}
}

// newProposer picks what drafts for a model.
func (l *Local) newProposer(o DraftOptions) proposer {
	switch {
	case o.Guess != nil:
		return guesser(o.Guess)
	case l.draft != nil:
		return newModelDraft(l)
	}
	return textual{}
}

// propose lets those draft who are to in this step, and keeps what can be used.
func (b *batcher) propose(plan []stepped) {
	var round []*stepped
	for i := range plan {
		if plan[i].depth > 0 {
			round = append(round, &plan[i])
		}
	}
	if len(round) == 0 {
		return
	}
	b.proposer.propose(round)
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
		if s.drafts = s.g.lawful(s.drafts); len(s.drafts) == 0 && n > 0 { // the round ends before it began
			b.proposer.judged(s.g, 0)
			b.depths.judged(&s.g.outlook, n, 0)
		}
	}
}

// draftState is what a request's drafts are made from.
type draftState struct {
	ngrams ngrams
	rows   heldRows
	own    ownState
}

// free gives back what is on the engine.
func (d *draftState) free() {
	d.rows.free()
	d.own.free()
}

// heldRows are hidden states that the model gave for the positions [from, to) of a sequence.
type heldRows struct {
	pieces   []*mlx.Array // [n, hidden] each, kept
	from, to int
}

// add notes the rows of the positions that end before to. What does not follow the rows before takes their place.
func (h *heldRows) add(x *mlx.Array, to int) {
	if from := to - x.Dim(0); from != h.to || len(h.pieces) == 0 {
		h.free()
		h.from = from
	}
	h.pieces, h.to = append(h.pieces, mlx.Keep(x)), to
}

// of gives the rows of the positions [from, to), which are all there.
func (h *heldRows) of(from, to int) *mlx.Array {
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
func (h *heldRows) drop(before int) {
	if before <= h.from {
		return
	}
	if before >= h.to {
		h.free()
		return
	}
	rest := mlx.Keep(h.of(before, h.to))
	to := h.to
	h.free()
	h.pieces, h.from, h.to = []*mlx.Array{rest}, before, to
}

func (h *heldRows) free() {
	mlx.Free(h.pieces...)
	*h = heldRows{}
}
