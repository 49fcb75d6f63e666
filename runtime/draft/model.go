package draft

import (
	"slices"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/sample"
)

// A draft model with its own KV cache catches up in a separate step if it is at least minCatchUpRows behind. Such a
// step evaluates at most maxCatchUpRows rows.
const (
	minCatchUpRows = 32
	maxCatchUpRows = 512
)

// ownCache is a draft model's own KV cache of a sequence.
type ownCache struct {
	seq       *cache.Sequence // nil before the first step
	evaluated int             // row up to which it holds the request's tokens, without drafts
}

func (o *ownCache) free() {
	if o.seq != nil {
		o.seq.Free()
	}
	*o = ownCache{}
}

// modelDrafter drafts with a models.Draft. A standalone draft is a regular model: its row p is token p. Any other
// draft, such as a multi-token prediction head, also reads the target: its row p is token p+1 and the target's hidden
// state at position p, from which that token was sampled.
//
// A draft with its own KV cache evaluates the prompt too, once the target has. If the target restored a prefix from the
// prefix cache, a standalone draft evaluates that prefix itself. Any other draft starts after the prefix, because the
// hidden states of the prefix are missing.
type modelDrafter struct {
	thread     *mlx.Thread
	target     models.Model
	draft      models.Draft
	kinds      []cache.Kind
	tokenShift int        // position of a row's token, relative to the row
	ranks      *mlx.Group // nil: no other rank computes the draft
}

func newModelDrafter(m *load.Model) *modelDrafter {
	d := &modelDrafter{thread: m.Thread, target: m.Target, draft: m.Draft, kinds: m.Draft.Layers(), tokenShift: 1}
	if models.Standalone(m.Draft) {
		d.tokenShift = 0
	}
	if m.DraftsTogether() {
		d.ranks = m.Ranks
	}
	return d
}

func (d *modelDrafter) NeededHiddenStates() HiddenStates {
	switch {
	case d.tokenShift == 0:
		return NoHiddenStates
	case len(d.kinds) == 0:
		return LastHiddenState
	}
	return AllHiddenStates
}

// pendingRows returns the positions [from, to) of the rows that the draft has to evaluate before it can draft. ok is
// false if the hidden states of these rows are missing.
func (d *modelDrafter) pendingRows(x *Text) (from, to int, ok bool) {
	to = len(x.Tokens) - d.tokenShift
	if len(d.kinds) == 0 {
		x.own.evaluated = to - 1
	}
	if d.tokenShift == 0 {
		return x.own.evaluated, to, true
	}
	// Restored positions have no hidden states: the draft never sees them.
	x.own.evaluated = max(x.own.evaluated, x.hidden.from)
	return x.own.evaluated, to, len(x.hidden.pieces) > 0 && x.hidden.to >= to && x.own.evaluated < to
}

// part returns rows of a request as input of the draft, and their hidden states if it needs them.
func (d *modelDrafter) part(x *Text, from, to int) (nn.Part, *mlx.Array) {
	if x.own.seq == nil {
		x.own.seq = cache.NewSequence(d.kinds)
	}
	p := nn.Part{Seq: x.own.seq, Tokens: x.Tokens[from+d.tokenShift : to+d.tokenShift]}
	if d.tokenShift == 0 {
		return p, nil
	}
	return p, x.hidden.slice(from, to)
}

// batch returns the input of a draft step.
func (d *modelDrafter) batch(b *nn.Batch, texts []*Text, hidden *mlx.Array) *models.DraftBatch {
	x := &models.DraftBatch{Batch: b, Hidden: hidden}
	if d.tokenShift == 0 {
		return x
	}
	x.Vectors = d.target.Embed(b.Tokens)
	for _, t := range texts {
		x.Target = append(x.Target, t.Target)
	}
	return x
}

// step evaluates rows [from, to) of each request. It returns the hidden states and logits of the draft.
func (d *modelDrafter) step(texts []*Text, from, to []int) (hidden, logits *mlx.Array) {
	var parts []nn.Part
	var states []*mlx.Array
	for i, t := range texts {
		p, h := d.part(t, from[i], to[i])
		parts = append(parts, p)
		if h != nil {
			states = append(states, h)
		}
	}
	var all *mlx.Array
	if len(states) > 0 {
		all = mlx.Concatenate(0, states...)
	}
	hidden, logits = d.draft.Step(d.batch(nn.NewBatch(d.thread, parts...), texts, all))
	for i, t := range texts {
		t.own.evaluated = to[i]
		t.hidden.dropBefore(to[i])
	}
	return hidden, logits
}

// CatchUp evaluates the pending rows of requests that have many of them.
func (d *modelDrafter) CatchUp(texts []*Text) {
	if len(d.kinds) == 0 {
		return
	}
	var lagging []*Text
	var from, to []int
	for _, t := range texts {
		begin, end, _ := d.pendingRows(t)
		if end = min(end-1, t.Target.Offset()); d.tokenShift > 0 { // Propose needs the output of the last row
			end = min(end, t.hidden.to)
		}
		if end-begin < minCatchUpRows {
			continue
		}
		lagging, from, to = append(lagging, t), append(from, begin), append(to, min(end, begin+maxCatchUpRows))
	}
	if len(lagging) == 0 {
		return
	}
	d.step(lagging, from, to)
	var state []*mlx.Array
	for _, t := range lagging {
		state = append(state, t.own.seq.State()...)
	}
	mlx.Eval(state...)
}

// Propose implements drafter. All draft steps of all requests form one graph, which is evaluated at once. A request
// that is more than maxCatchUpRows behind catches up instead of drafting.
func (d *modelDrafter) Propose(round []*Item) {
	round = slices.Clone(round)
	slices.SortStableFunc(round, func(a, b *Item) int { return b.Depth - a.Depth })
	var lagging, texts []*Text
	var items []*Item
	var rows []sample.DraftRow
	var from, to []int
	for _, s := range round {
		begin, end, ok := d.pendingRows(s.Text)
		switch {
		case !ok:
		case end-begin > maxCatchUpRows:
			lagging = append(lagging, s.Text)
		default:
			items, texts, rows = append(items, s), append(texts, s.Text), append(rows, s.Row)
			from, to = append(from, begin), append(to, end)
		}
	}
	d.CatchUp(lagging)
	if len(texts) == 0 {
		return
	}
	hidden, logits := d.step(texts, from, to)
	tokens, q := d.sample(logits, rows, 0)
	drafted, distributions := []*mlx.Array{tokens}, [][]*mlx.Array{q}
	for k := 1; k < items[0].Depth; k++ {
		n := slices.IndexFunc(items, func(s *Item) bool { return s.Depth <= k })
		if n < 0 {
			n = len(items)
		}
		if n < tokens.Dim(0) {
			first := mlx.Range(0, n)
			tokens, hidden = mlx.SliceAxis(tokens, 0, first), mlx.SliceAxis(hidden, 0, first)
		}
		parts := make([]nn.Part, n)
		for i, t := range texts[:n] {
			if k == 1 {
				t.own.seq.Begin()
			}
			parts[i] = nn.Part{Seq: t.own.seq}
		}
		hidden, logits = d.draft.Step(d.batch(nn.NextBatch(tokens, parts...), texts[:n], hidden))
		tokens, q = d.sample(logits, rows[:n], k)
		drafted, distributions = append(drafted, tokens), append(distributions, q)
	}
	mlx.Eval(slices.Concat(append(distributions, drafted)...)...)
	for k := range drafted {
		for i, id := range mlx.ToSlice[int32](drafted[k]) {
			items[i].Drafts, items[i].Q = append(items[i].Drafts, id), append(items[i].Q, distributions[k][i])
		}
	}
}

// sample samples the next draft tokens. All ranks go on with those of rank 0.
func (d *modelDrafter) sample(logits *mlx.Array, rows []sample.DraftRow, k int) (tokens *mlx.Array, q []*mlx.Array) {
	tokens, q = sample.Drafts(logits, rows, k)
	if d.ranks != nil { // float32 has all ids
		tokens = mlx.AsType(d.ranks.Broadcast(mlx.AsType(tokens, mlx.Float32), 0), mlx.Int32)
	}
	return tokens, q
}

// FinishRound implements drafter. A standalone draft keeps the cached rows of accepted drafts. Any other draft drops
// all of them, because they were computed without the target's hidden states.
func (d *modelDrafter) FinishRound(t *Text, accepted int) {
	own := &t.own
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
