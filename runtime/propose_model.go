package runtime

import (
	"slices"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

// A draft model with its own KV cache catches up in a separate step if it is at least minCatchUpRows behind. Such a
// step evaluates at most maxCatchUpRows rows.
const (
	minCatchUpRows = 32
	maxCatchUpRows = 512
)

// draftCache is a draft model's own KV cache of a sequence.
type draftCache struct {
	seq       *cache.Sequence // nil before the first step
	evaluated int             // row up to which it holds the request's tokens, without drafts
}

func (o *draftCache) free() {
	if o.seq != nil {
		o.seq.Free()
	}
	*o = draftCache{}
}

// modelDrafter drafts with a models.Draft. A standalone draft is a regular model: its row p is token p. Any other
// draft, such as a multi-token prediction head, also reads the target: its row p is token p+1 and the target's hidden
// state at position p, from which that token was sampled.
//
// A draft with its own KV cache evaluates the prompt too, once the target has. If the target restored a prefix from the
// prefix cache, a standalone draft evaluates that prefix itself. Any other draft starts after the prefix, because the
// hidden states of the prefix are missing.
type modelDrafter struct {
	l          *Local
	draft      models.Draft
	kinds      []cache.Kind
	tokenShift int // position of a row's token, relative to the row
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

// pendingRows returns the positions [from, to) of the rows that the draft has to evaluate before it can draft. ok is
// false if the hidden states of these rows are missing.
func (d *modelDrafter) pendingRows(g *generation) (from, to int, ok bool) {
	x, to := &g.draftInputs, len(g.tokens)-d.tokenShift
	if len(d.kinds) == 0 {
		x.cache.evaluated = to - 1
	}
	if d.tokenShift == 0 {
		return x.cache.evaluated, to, true
	}
	// Restored positions have no hidden states: the draft never sees them.
	x.cache.evaluated = max(x.cache.evaluated, x.hidden.from)
	return x.cache.evaluated, to, len(x.hidden.pieces) > 0 && x.hidden.to >= to && x.cache.evaluated < to
}

// part returns rows of a request as input of the draft, and their hidden states if it needs them.
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

// batch returns the input of a draft step.
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

// step evaluates rows [from, to) of each request. It returns the hidden states and logits of the draft.
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
		g.draftInputs.cache.evaluated = to[i]
		g.draftInputs.hidden.dropBefore(to[i])
	}
	return hidden, logits
}

// catchUp evaluates the pending rows of requests that have many of them.
func (d *modelDrafter) catchUp(generations []*generation) {
	if len(d.kinds) == 0 {
		return
	}
	var lagging []*generation
	var from, to []int
	for _, g := range generations {
		begin, end, _ := d.pendingRows(g)
		if end = min(end-1, g.seq.Offset()); d.tokenShift > 0 { // propose needs the output of the last row
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

// propose implements drafter. All draft steps of all requests form one graph, which is evaluated at once. A request
// that is more than maxCatchUpRows behind catches up instead of drafting.
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

// finishRound implements drafter. A standalone draft keeps the cached rows of accepted drafts. Any other draft drops
// all of them, because they were computed without the target's hidden states.
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
	own.evaluated = own.seq.Offset()
}
