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
	followLeast = 32
	followMost  = 512
)

// ownState is the state that a draft keeps of a sequence.
type ownState struct {
	seq  *cache.Sequence // nil before the first step
	read int             // position up to which its rows are those of the text
}

func (o *ownState) free() {
	if o.seq != nil {
		o.seq.Free()
	}
	*o = ownState{}
}

// modelDraft drafts with a models.Draft. A row of a standalone draft at a position is the token there. A row of another is the token after
// the position, and the hidden state there, from which the model chose it.
//
// A draft with state of its own reads the text behind the model. Where the model has skipped what the prefix cache knew, a standalone one
// reads it then; the other begins after it, since it would need the hidden states.
type modelDraft struct {
	l     *Local
	draft models.Draft
	kinds []cache.Kind
	shift int // of the token of a row against the row's position
}

func newModelDraft(l *Local) *modelDraft {
	d := &modelDraft{l: l, draft: l.draft, kinds: l.draft.Layers(), shift: 1}
	if models.Standalone(l.draft) {
		d.shift = 0
	}
	return d
}

func (d *modelDraft) reads() reading {
	switch {
	case d.shift == 0:
		return readsNothing
	case len(d.kinds) == 0:
		return readsLast
	}
	return readsAll
}

// unread gives the positions of the rows that the draft has to read before it can guess what follows the request's tokens; ok is false where
// it cannot.
func (d *modelDraft) unread(g *generation) (from, to int, ok bool) {
	x, to := &g.drafting, len(g.tokens)-d.shift
	if len(d.kinds) == 0 {
		x.own.read = to - 1
	}
	if d.shift == 0 {
		return x.own.read, to, true
	}
	// What was skipped is missing: the draft sees a text without it.
	x.own.read = max(x.own.read, x.rows.from)
	return x.own.read, to, len(x.rows.pieces) > 0 && x.rows.to >= to && x.own.read < to
}

// part is rows of a request, and their hidden states if the draft wants them.
func (d *modelDraft) part(g *generation, from, to int) (nn.Part, *mlx.Array) {
	x := &g.drafting
	if x.own.seq == nil {
		x.own.seq = cache.NewSequence(d.kinds)
	}
	p := nn.Part{Seq: x.own.seq, Tokens: g.tokens[from+d.shift : to+d.shift]}
	if d.shift == 0 {
		return p, nil
	}
	return p, x.rows.of(from, to)
}

// batch is the input of a step.
func (d *modelDraft) batch(b *nn.Batch, of []*generation, hidden *mlx.Array) *models.DraftBatch {
	x := &models.DraftBatch{Batch: b, Hidden: hidden}
	if d.shift == 0 {
		return x
	}
	x.Vectors = d.l.model.Embed(b.Tokens)
	for _, g := range of {
		x.Target = append(x.Target, g.seq)
	}
	return x
}

// read lets the draft read rows [from, to) of each request. It gives what the step does.
func (d *modelDraft) read(of []*generation, from, to []int) (hidden, scores *mlx.Array) {
	var parts []nn.Part
	var held []*mlx.Array
	for i, g := range of {
		p, h := d.part(g, from[i], to[i])
		parts = append(parts, p)
		if h != nil {
			held = append(held, h)
		}
	}
	var all *mlx.Array
	if len(held) > 0 {
		all = mlx.Concatenate(0, held...)
	}
	hidden, scores = d.draft.Step(d.batch(nn.NewBatch(d.l.thread, parts...), of, all))
	for i, g := range of {
		g.drafting.own.read = to[i]
		g.drafting.rows.drop(to[i])
	}
	return hidden, scores
}

// follow reads what the model has evaluated, where that is many rows.
func (d *modelDraft) follow(of []*generation) {
	if len(d.kinds) == 0 {
		return
	}
	var who []*generation
	var from, to []int
	for _, g := range of {
		begin, end, _ := d.unread(g)
		if end = min(end-1, g.seq.Offset()); d.shift > 0 { // the last row is what drafting begins with
			end = min(end, g.drafting.rows.to)
		}
		if end-begin < followLeast {
			continue
		}
		who, from, to = append(who, g), append(from, begin), append(to, min(end, begin+followMost))
	}
	if len(who) == 0 {
		return
	}
	d.read(who, from, to)
	var state []*mlx.Array
	for _, g := range who {
		state = append(state, g.drafting.own.seq.State()...)
	}
	mlx.Eval(state...)
}

// propose implements proposer: all steps of all requests are one graph, and are evaluated at once.
func (d *modelDraft) propose(round []*stepped) {
	round = slices.Clone(round)
	slices.SortStableFunc(round, func(a, b *stepped) int { return b.depth - a.depth })
	var late, who []*generation
	var steps []*stepped
	var from, to []int
	for _, s := range round {
		begin, end, ok := d.unread(s.g)
		switch {
		case !ok:
		case end-begin > followMost:
			late = append(late, s.g)
		default:
			steps, who, from, to = append(steps, s), append(who, s.g), append(from, begin), append(to, end)
		}
	}
	d.follow(late)
	if len(who) == 0 {
		return
	}
	hidden, scores := d.read(who, from, to)
	tokens, q := guess(scores, who, 0)
	all, chances := []*mlx.Array{tokens}, [][]*mlx.Array{q}
	for k := 1; k < steps[0].depth; k++ {
		n := slices.IndexFunc(steps, func(s *stepped) bool { return s.depth <= k })
		if n < 0 {
			n = len(steps)
		}
		if n < tokens.Dim(0) {
			first := mlx.Range(0, n)
			tokens, hidden = mlx.SliceAxis(tokens, 0, first), mlx.SliceAxis(hidden, 0, first)
		}
		parts := make([]nn.Part, n)
		for i, g := range who[:n] {
			if k == 1 {
				g.drafting.own.seq.Begin()
			}
			parts[i] = nn.Part{Seq: g.drafting.own.seq}
		}
		hidden, scores = d.draft.Step(d.batch(nn.NextBatch(tokens, parts...), who[:n], hidden))
		tokens, q = guess(scores, who[:n], k)
		all, chances = append(all, tokens), append(chances, q)
	}
	mlx.Eval(slices.Concat(append(chances, all)...)...)
	for k := range all {
		for i, id := range mlx.ToSlice[int32](all[k]) {
			steps[i].drafts, steps[i].q = append(steps[i].drafts, id), append(steps[i].q, chances[k][i])
		}
	}
}

// judged implements proposer. What a draft with state read of its own guesses stays as far as they were right, if it depends on the tokens
// alone.
func (d *modelDraft) judged(g *generation, accepted int) {
	own := &g.drafting.own
	if own.seq == nil {
		return
	}
	if d.shift > 0 {
		own.seq.Commit(0)
		return
	}
	own.seq.Commit(accepted)
	own.read = own.seq.Offset()
}
