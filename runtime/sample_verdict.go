package runtime

import (
	"slices"

	"github.com/ingotml/ingot/mlx"
)

// ask is what a step wants to know of one request: the tokens that follow its rows. Row i comes after i of the drafts, and so
// judges draft i; the last row has none to judge.
type ask struct {
	s      *sampler
	drafts []int32
	// q are the probabilities that each draft was drawn with, float32 [1, vocab]; nil where each was the only one that might have come, as
	// the likeliest token of a draft model or one that was looked up.
	q     []*mlx.Array
	masks [][]uint32 // of each row, one bit for each token that may come; nil: all may
	logs  int        // how many of the likeliest tokens are told beside the log-probability of each that is chosen; -1: neither
}

func (a *ask) rows() int { return len(a.drafts) + 1 }

// ask is what a step wants to know of the request, whose drafts are lawful (see ask).
func (g *generation) ask(drafts []int32, q []*mlx.Array) ask {
	a := ask{s: &g.sampler, drafts: drafts, q: q, logs: -1}
	if g.request.wantsLogProbs() {
		a.logs = g.request.TopLogProbs
	}
	if g.rules != nil {
		a.masks = g.rules.along(drafts, g.budget)
	}
	return a
}

// verdict is what a step says to its asks. It is on the device until it is read.
//
// For each row it has the token that follows it. A draft is kept as long as it equals that: where drafts were certain, the token
// is drawn as if there were none, which keeps a draft with its probability p and else gives one of the others in proportion, so
// that a request says the same with drafts and without. Where they were drawn from q, it is the draft with min(1, p/q), else it is
// drawn from max(p-q, 0), where the draft itself has no part.
type verdict struct {
	asks   []ask
	starts []int      // the first row of each ask
	said   *mlx.Array // int32 [rows], kept
	logs   *logs      // nil where nobody wants them
	left   int        // asks that have neither been read nor given up
	host   []outcome  // nil before it was read
}

// outcome is what a verdict says to an ask: so many of its drafts are kept, and a token follows them.
type outcome struct {
	accepted int
	next     int32
	logs     []LogProb // of the accepted drafts and the next token, or nil
}

// log is the log-probability of the i-th token of the outcome, nil where it is not wanted.
func (o *outcome) log(i int) *LogProb {
	if o.logs == nil {
		return nil
	}
	return &o.logs[i]
}

// answer is the place of a request in a verdict. A nil one is none.
type answer struct {
	of *verdict
	i  int
}

// verdicts begins to decide for all requests of a step, in one pass over their rows' scores [rows, vocab]. It runs on the engine's
// thread; arrays gives what is to be evaluated.
func verdicts(scores *mlx.Array, asks []ask) *verdict {
	v := &verdict{asks: slices.Clone(asks), left: len(asks)}
	var rows []row
	for i := range v.asks {
		a := &v.asks[i]
		v.starts = append(v.starts, len(rows))
		for at := range a.rows() {
			rows = append(rows, newRow(a, at, len(rows)))
		}
		a.s.drawn++ // what else it may say is added when it has been read
	}
	v.said = follow(scores, rows)
	v.logs = newLogs(scores, rows, v.said)
	mlx.Keep(v.arrays()...)
	return v
}

// follow gives the tokens that follow rows, int32 [len(rows)]: rows that are chosen in the same way go through the same operations.
func follow(scores *mlx.Array, rows []row) *mlx.Array {
	groups := map[shape][]row{}
	var shapes []shape
	for _, r := range rows {
		s := r.shape(scores.Dim(-1))
		if groups[s] == nil {
			shapes = append(shapes, s)
		}
		groups[s] = append(groups[s], r)
	}
	var parts []*mlx.Array
	var order []int32
	for _, s := range shapes {
		for g := range slices.Chunk(groups[s], s.atOnce(scores.Dim(-1))) {
			parts = append(parts, s.choose(pick(scores, g), g))
			for _, r := range g {
				order = append(order, int32(r.number))
			}
		}
	}
	return inOrder(order, parts...)
}

// inOrder puts parts together so that their i-th element comes to the place order[i].
func inOrder(order []int32, parts ...*mlx.Array) *mlx.Array {
	if len(parts) == 1 {
		return parts[0] // it has all in order
	}
	from := make([]int32, len(order))
	for i, place := range order {
		from[place] = int32(i)
	}
	return mlx.Take(mlx.Concatenate(0, parts...), mlx.FromSlice(parts[0].Thread(), from), 0)
}

// pick takes some rows of all; those that follow each other are not copied.
func pick(scores *mlx.Array, rows []row) *mlx.Array {
	first, n := rows[0].number, len(rows)
	switch {
	case n == scores.Dim(0):
		return scores
	case rows[n-1].number-first == n-1:
		return mlx.SliceAxis(scores, 0, mlx.Range(first, first+n))
	}
	return mlx.Take(scores, column(scores.Thread(), rows, func(r row) int32 { return int32(r.number) }, n), 0)
}

// arrays are what is to be evaluated.
func (v *verdict) arrays() []*mlx.Array {
	return append(v.logs.arrays(), v.said)
}

// read takes the outcome of a request, which may wait for the device. It runs on the engine's thread; the answer is used up.
func (a *answer) read() outcome {
	v := a.of
	if v.host == nil {
		v.host = v.outcomes(mlx.ToSlice[int32](v.said))
	}
	o := v.host[a.i]
	v.asks[a.i].s.drawn += uint64(o.accepted)
	a.free()
	return o
}

// free gives an answer up. It runs on the engine's thread.
func (a *answer) free() {
	if a == nil || a.of == nil {
		return
	}
	if a.of.left--; a.of.left == 0 {
		mlx.Free(a.of.arrays()...)
	}
	a.of = nil
}

// outcomes walks the rows of each ask as far as its drafts are kept.
func (v *verdict) outcomes(said []int32) []outcome {
	logs := v.logs.read(said)
	out := make([]outcome, len(v.asks))
	for i, a := range v.asks {
		row := v.starts[i]
		n := 0
		for n < a.rows()-1 && said[row+n] == a.drafts[n] {
			n++
		}
		out[i] = outcome{accepted: n, next: said[row+n]}
		if a.logs >= 0 {
			out[i].logs = logs[row : row+n+1]
		}
	}
	return out
}

// tokens are what answers without drafts say, int32 [len(answers)], not read: a next step can be built upon them.
func tokens(answers []*answer) *mlx.Array {
	all, one := answers[0].of, true
	parts := make([]*mlx.Array, len(answers))
	for i, a := range answers {
		at := a.of.starts[a.i]
		one = one && a.of == all && at == i
		parts[i] = mlx.SliceAxis(a.of.said, 0, mlx.Range(at, at+1))
	}
	if one && all.said.Dim(0) == len(answers) {
		return all.said
	}
	return mlx.Concatenate(0, parts...)
}
