package runtime

import (
	"slices"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

// How many rows a draft with state of its own must be behind to read them in a step of their own, and the most of such a step.
const (
	minCatchUpRows = 32
	maxCatchUpRows = 512
)

// ownState is the state that a draft keeps of a sequence.
type draftCache struct {
	seq  *cache.Sequence // nil before the first step
	read int             // position up to which its rows are those of the text
}

func (o *draftCache) free() {
	if o.seq != nil {
		o.seq.Free()
	}
	*o = draftCache{}
}

// modelDraft drafts with a models.Draft. A row of a standalone draft at a position is the token there. A row of another is the token after
// the position, and the hidden state there, from which the model chose it.
//
// A draft with state of its own reads the text behind the model. Where the model has skipped what the prefix cache knew, a standalone one
// reads it then; the other begins after it, since it would need the hidden states.
type modelDrafter struct {
	l          *Local
	draft      models.Draft
	kinds      []cache.Kind
	tokenShift int // of the token of a row against the row's position
}

func newModelDrafter(l *Local) *modelDrafter {
	d := &modelDrafter{l: l, draft: l.draft, kinds: l.draft.Layers(), tokenShift: 1}
	if models.Standalone(l.draft) {
		d.tokenShift = 0
	}
	return d
}

func (d *modelDrafter) neededHiddenStates() hiddenStates {
	switch {
	case d.tokenShift == 0:
		return noHiddenStates
	case len(d.kinds) == 0:
		return lastHiddenState
	}
	return allHiddenStates
}

// unread gives the positions of the rows that the draft has to read before it can guess what follows the request's tokens; ok is false where
// it cannot.
func (d *modelDrafter) pendingRows(g *generation) (from, to int, ok bool) {
	x, to := &g.draftInputs, len(g.tokens)-d.tokenShift
	if len(d.kinds) == 0 {
		x.cache.read = to - 1
	}
	if d.tokenShift == 0 {
		return x.cache.read, to, true
	}
	// What was skipped is missing: the draft sees a text without it.
	x.cache.read = max(x.cache.read, x.hidden.from)
	return x.cache.read, to, len(x.hidden.pieces) > 0 && x.hidden.to >= to && x.cache.read < to
}

// part is rows of a request, and their hidden states if the draft wants them.
func (d *modelDrafter) part(g *generation, from, to int) (nn.Part, *mlx.Array) {
	x := &g.draftInputs
	if x.cache.seq == nil {
		x.cache.seq = cache.NewSequence(d.kinds)
	}
	p := nn.Part{Seq: x.cache.seq, Tokens: g.tokens[from+d.tokenShift : to+d.tokenShift]}
	if d.tokenShift == 0 {
		return p, nil
	}
	return p, x.hidden.slice(from, to)
}

// batch is the input of a step.
func (d *modelDrafter) batch(b *nn.Batch, generations []*generation, hidden *mlx.Array) *models.DraftBatch {
	x := &models.DraftBatch{Batch: b, Hidden: hidden}
	if d.tokenShift == 0 {
		return x
	}
	x.Vectors = d.l.model.Embed(b.Tokens)
	for _, g := range generations {
		x.Target = append(x.Target, g.seq)
	}
	return x
}

// read lets the draft read rows [from, to) of each request. It gives what the step does.
func (d *modelDrafter) step(generations []*generation, from, to []int) (hidden, logits *mlx.Array) {
	var parts []nn.Part
	var states []*mlx.Array
	for i, g := range generations {
		p, h := d.part(g, from[i], to[i])
		parts = append(parts, p)
		if h != nil {
			states = append(states, h)
		}
	}
	var all *mlx.Array
	if len(states) > 0 {
		all = mlx.Concatenate(0, states...)
	}
	hidden, logits = d.draft.Step(d.batch(nn.NewBatch(d.l.thread, parts...), generations, all))
	for i, g := range generations {
		g.draftInputs.cache.read = to[i]
		g.draftInputs.hidden.dropBefore(to[i])
	}
	return hidden, logits
}

// follow reads what the model has evaluated, where that is many rows.
func (d *modelDrafter) catchUp(generations []*generation) {
	if len(d.kinds) == 0 {
		return
	}
	var lagging []*generation
	var from, to []int
	for _, g := range generations {
		begin, end, _ := d.pendingRows(g)
		if end = min(end-1, g.seq.Offset()); d.tokenShift > 0 { // the last row is what drafting begins with
			end = min(end, g.draftInputs.hidden.to)
		}
		if end-begin < minCatchUpRows {
			continue
		}
		lagging, from, to = append(lagging, g), append(from, begin), append(to, min(end, begin+maxCatchUpRows))
	}
	if len(lagging) == 0 {
		return
	}
	d.step(lagging, from, to)
	var state []*mlx.Array
	for _, g := range lagging {
		state = append(state, g.draftInputs.cache.seq.State()...)
	}
	mlx.Eval(state...)
}

// propose implements proposer: all steps of all requests are one graph, and are evaluated at once.
func (d *modelDrafter) propose(round []*batchItem) {
	round = slices.Clone(round)
	slices.SortStableFunc(round, func(a, b *batchItem) int { return b.depth - a.depth })
	var lagging, generations []*generation
	var items []*batchItem
	var from, to []int
	for _, s := range round {
		begin, end, ok := d.pendingRows(s.g)
		switch {
		case !ok:
		case end-begin > maxCatchUpRows:
			lagging = append(lagging, s.g)
		default:
			items, generations, from, to = append(items, s), append(generations, s.g), append(from, begin), append(to, end)
		}
	}
	d.catchUp(lagging)
	if len(generations) == 0 {
		return
	}
	hidden, logits := d.step(generations, from, to)
	tokens, q := draftTokens(logits, generations, 0)
	drafted, distributions := []*mlx.Array{tokens}, [][]*mlx.Array{q}
	for k := 1; k < items[0].depth; k++ {
		n := slices.IndexFunc(items, func(s *batchItem) bool { return s.depth <= k })
		if n < 0 {
			n = len(items)
		}
		if n < tokens.Dim(0) {
			first := mlx.Range(0, n)
			tokens, hidden = mlx.SliceAxis(tokens, 0, first), mlx.SliceAxis(hidden, 0, first)
		}
		parts := make([]nn.Part, n)
		for i, g := range generations[:n] {
			if k == 1 {
				g.draftInputs.cache.seq.Begin()
			}
			parts[i] = nn.Part{Seq: g.draftInputs.cache.seq}
		}
		hidden, logits = d.draft.Step(d.batch(nn.NextBatch(tokens, parts...), generations[:n], hidden))
		tokens, q = draftTokens(logits, generations[:n], k)
		drafted, distributions = append(drafted, tokens), append(distributions, q)
	}
	mlx.Eval(slices.Concat(append(distributions, drafted)...)...)
	for k := range drafted {
		for i, id := range mlx.ToSlice[int32](drafted[k]) {
			items[i].drafts, items[i].q = append(items[i].drafts, id), append(items[i].q, distributions[k][i])
		}
	}
}

// judged implements proposer. What a draft with state read of its own guesses stays as far as they were right, if it depends on the tokens
// alone.
func (d *modelDrafter) finishRound(g *generation, accepted int) {
	own := &g.draftInputs.cache
	if own.seq == nil {
		return
	}
	if d.tokenShift > 0 {
		own.seq.Commit(0)
		return
	}
	own.seq.Commit(accepted)
	own.read = own.seq.Offset()
}
