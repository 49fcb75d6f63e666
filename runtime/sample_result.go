package runtime

import (
	"slices"

	"github.com/ingotml/ingot/mlx"
)

// ask is what a step wants to know of one request: the tokens that follow its rows. Row i comes after i of the drafts, and so
// judges draft i; the last row has none to judge.
type sampleRequest struct {
	sampler *sampler
	drafts  []int32
	// q are the probabilities that each draft was drawn with, float32 [1, vocab]; nil where each was the only one that might have come, as
	// the likeliest token of a draft model or one that was looked up.
	q           []*mlx.Array
	masks       [][]uint32 // of each row, one bit for each token that may come; nil: all may
	topLogProbs int        // how many of the likeliest tokens are told beside the log-probability of each that is chosen; -1: neither
}

func (a *sampleRequest) rows() int { return len(a.drafts) + 1 }

// ask is what a step wants to know of the request, whose drafts are lawful (see ask).
func (g *generation) sampleRequest(drafts []int32, q []*mlx.Array) sampleRequest {
	a := sampleRequest{sampler: &g.sampler, drafts: drafts, q: q, topLogProbs: -1}
	if g.request.wantsLogProbs() {
		a.topLogProbs = g.request.TopLogProbs
	}
	if g.constraint != nil {
		a.masks = g.constraint.masksAlong(drafts, g.budget)
	}
	return a
}

// verdict is what a step says to its asks. It is on the device until it is read.
//
// For each row it has the token that follows it. A draft is kept as long as it equals that: where drafts were certain, the token
// is drawn as if there were none, which keeps a draft with its probability p and else gives one of the others in proportion, so
// that a request says the same with drafts and without. Where they were drawn from q, it is the draft with min(1, p/q), else it is
// drawn from max(p-q, 0), where the draft itself has no part.
type sampleResult struct {
	requests []sampleRequest
	starts   []int      // the first row of each ask
	tokens   *mlx.Array // int32 [rows], kept
	logProbs *logProbs  // nil where nobody wants them
	unread   int        // asks that have neither been read nor given up
	outcomes []outcome  // nil before it was read
}

// outcome is what a verdict says to an ask: so many of its drafts are kept, and a token follows them.
type outcome struct {
	accepted int
	next     int32
	logProbs []LogProb // of the accepted drafts and the next token, or nil
}

// log is the log-probability of the i-th token of the outcome, nil where it is not wanted.
func (o *outcome) logProb(i int) *LogProb {
	if o.logProbs == nil {
		return nil
	}
	return &o.logProbs[i]
}

// answer is the place of a request in a verdict. A nil one is none.
type pendingSample struct {
	result *sampleResult
	index  int
}

// verdicts begins to decide for all requests of a step, in one pass over their rows' scores [rows, vocab]. It runs on the engine's
// thread; arrays gives what is to be evaluated.
func sampleTokens(logits *mlx.Array, requests []sampleRequest) *sampleResult {
	v := &sampleResult{requests: slices.Clone(requests), unread: len(requests)}
	var rows []row
	for i := range v.requests {
		a := &v.requests[i]
		v.starts = append(v.starts, len(rows))
		for at := range a.rows() {
			rows = append(rows, newRow(a, at, len(rows)))
		}
		a.sampler.position++ // what else it may say is added when it has been read
	}
	v.tokens = nextTokens(logits, rows)
	v.logProbs = newLogProbs(logits, rows, v.tokens)
	mlx.Keep(v.arrays()...)
	return v
}

// follow gives the tokens that follow rows, int32 [len(rows)]: rows that are chosen in the same way go through the same operations.
func nextTokens(logits *mlx.Array, rows []row) *mlx.Array {
	groups := map[samplingMode][]row{}
	var shapes []samplingMode
	for _, r := range rows {
		s := r.mode(logits.Dim(-1))
		if groups[s] == nil {
			shapes = append(shapes, s)
		}
		groups[s] = append(groups[s], r)
	}
	var parts []*mlx.Array
	var order []int32
	for _, s := range shapes {
		for g := range slices.Chunk(groups[s], s.chunkRows(logits.Dim(-1))) {
			parts = append(parts, s.choose(selectRows(logits, g), g))
			for _, r := range g {
				order = append(order, int32(r.index))
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
func selectRows(logits *mlx.Array, rows []row) *mlx.Array {
	first, n := rows[0].index, len(rows)
	switch {
	case n == logits.Dim(0):
		return logits
	case rows[n-1].index-first == n-1:
		return mlx.SliceAxis(logits, 0, mlx.Range(first, first+n))
	}
	return mlx.Take(logits, column(logits.Thread(), rows, func(r row) int32 { return int32(r.index) }, n), 0)
}

// arrays are what is to be evaluated.
func (v *sampleResult) arrays() []*mlx.Array {
	return append(v.logProbs.arrays(), v.tokens)
}

// read takes the outcome of a request, which may wait for the device. It runs on the engine's thread; the answer is used up.
func (a *pendingSample) read() outcome {
	v := a.result
	if v.outcomes == nil {
		v.outcomes = v.computeOutcomes(mlx.ToSlice[int32](v.tokens))
	}
	o := v.outcomes[a.index]
	v.requests[a.index].sampler.position += uint64(o.accepted)
	a.free()
	return o
}

// free gives an answer up. It runs on the engine's thread.
func (a *pendingSample) free() {
	if a == nil || a.result == nil {
		return
	}
	if a.result.unread--; a.result.unread == 0 {
		mlx.Free(a.result.arrays()...)
	}
	a.result = nil
}

// outcomes walks the rows of each ask as far as its drafts are kept.
func (v *sampleResult) computeOutcomes(tokens []int32) []outcome {
	logs := v.logProbs.read(tokens)
	out := make([]outcome, len(v.requests))
	for i, a := range v.requests {
		row := v.starts[i]
		n := 0
		for n < a.rows()-1 && tokens[row+n] == a.drafts[n] {
			n++
		}
		out[i] = outcome{accepted: n, next: tokens[row+n]}
		if a.topLogProbs >= 0 {
			out[i].logProbs = logs[row : row+n+1]
		}
	}
	return out
}

// tokens are what answers without drafts say, int32 [len(answers)], not read: a next step can be built upon them.
func sampledTokens(samples []*pendingSample) *mlx.Array {
	all, one := samples[0].result, true
	parts := make([]*mlx.Array, len(samples))
	for i, a := range samples {
		at := a.result.starts[a.index]
		one = one && a.result == all && at == i
		parts[i] = mlx.SliceAxis(a.result.tokens, 0, mlx.Range(at, at+1))
	}
	if one && all.tokens.Dim(0) == len(samples) {
		return all.tokens
	}
	return mlx.Concatenate(0, parts...)
}
