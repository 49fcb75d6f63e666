package sample

import (
	"slices"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
)

// Request is one request's part of a step's sampling: the tokens that follow its rows. Row i follows the
// first i drafts and verifies draft i; the last row verifies none.
type Request struct {
	Sampler *Sampler
	Drafts  []int32
	// Q holds the distribution that each draft was drawn from, float32 [1, vocab]; nil for a draft that was not drawn,
	// such as a draft model's most likely token or the result of an n-gram lookup.
	Q           []*mlx.Array
	Masks       [][]uint32 // of each row: one bit for each allowed token; nil: all are allowed
	TopLogProbs int        // number of most likely tokens to report with each log-probability; -1: report none at all
}

// Rows returns the number of rows of logits that the request takes.
func (a *Request) Rows() int { return len(a.Drafts) + 1 }

// Result holds the tokens sampled in a step. They are on the device until they are read.
//
// It has one token for each row. Drafts are verified in order, and a draft is accepted if it equals the token of its
// row. If the draft was not drawn, that token is sampled as if there were no drafts, so a request generates the same
// tokens with drafts and without. If the draft was drawn from q, the token is the draft with probability min(1, p/q),
// and is otherwise drawn from max(p-q, 0), which excludes the draft. This keeps the distribution p: see speculative
// sampling, https://arxiv.org/abs/2211.17192.
type Result struct {
	requests []Request
	starts   []int      // the first row of each request
	tokens   *mlx.Array // int32 [rows], kept
	logProbs *logProbs  // nil if no request wants them
	unread   int        // requests whose Pending was neither read nor freed
	outcomes []Outcome  // nil before the first read
}

// Outcome is the result of a Request: the number of accepted drafts, and the token after them.
type Outcome struct {
	Accepted int
	Next     int32
	logProbs []runtime.LogProb // of the accepted drafts and the next token; nil if not wanted
}

// LogProb returns the log-probability of token i of the outcome; nil if not wanted.
func (o *Outcome) LogProb(i int) *runtime.LogProb {
	if o.logProbs == nil {
		return nil
	}
	return &o.logProbs[i]
}

// Pending is one request's part of a Result. A nil Pending can be freed.
type Pending struct {
	result *Result
	index  int
}

// Start starts sampling for all requests of a step, from the logits [rows, vocab] of their rows. The caller
// evaluates the result's arrays. It runs on the engine's thread.
func Start(logits *mlx.Array, requests []Request) *Result {
	v := &Result{requests: slices.Clone(requests), unread: len(requests)}
	var rows []row
	for i := range v.requests {
		a := &v.requests[i]
		v.starts = append(v.starts, len(rows))
		for at := range a.Rows() {
			rows = append(rows, newRow(a, at, len(rows)))
		}
		a.Sampler.position++ // read adds the accepted drafts
	}
	v.tokens = nextTokens(logits, rows)
	v.logProbs = newLogProbs(logits, rows, v.tokens)
	mlx.Keep(v.Arrays()...)
	return v
}

// nextTokens samples the token that follows each row, int32 [len(rows)]. Rows with the same sampling mode are processed
// together.
func nextTokens(logits *mlx.Array, rows []row) *mlx.Array {
	groups := map[samplingMode][]row{}
	var modes []samplingMode
	for _, r := range rows {
		s := r.mode(logits.Dim(-1))
		if groups[s] == nil {
			modes = append(modes, s)
		}
		groups[s] = append(groups[s], r)
	}
	var parts []*mlx.Array
	var order []int32
	for _, s := range modes {
		for g := range slices.Chunk(groups[s], s.chunkRows(logits.Dim(-1))) {
			parts = append(parts, s.choose(selectRows(logits, g), g))
			for _, r := range g {
				order = append(order, int32(r.index))
			}
		}
	}
	return inOrder(order, parts...)
}

// inOrder concatenates parts and moves their element i to index order[i].
func inOrder(order []int32, parts ...*mlx.Array) *mlx.Array {
	if len(parts) == 1 {
		return parts[0] // a single part is in order already
	}
	from := make([]int32, len(order))
	for i, place := range order {
		from[place] = int32(i)
	}
	return mlx.Take(mlx.Concatenate(0, parts...), mlx.FromSlice(parts[0].Thread(), from), 0)
}

// selectRows returns the logits of some rows. It copies only if they are not contiguous.
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

// Part returns the pending sample of request i. Each part must be read or freed once.
func (v *Result) Part(i int) *Pending { return &Pending{v, i} }

// Arrays returns the arrays to evaluate.
func (v *Result) Arrays() []*mlx.Array {
	return append(v.logProbs.arrays(), v.tokens)
}

// Read returns the request's outcome and frees the sample. It may wait for the device. It runs on the engine's thread.
func (a *Pending) Read() Outcome {
	v := a.result
	if v.outcomes == nil {
		v.outcomes = v.computeOutcomes(mlx.ToSlice[int32](v.tokens))
	}
	o := v.outcomes[a.index]
	v.requests[a.index].Sampler.position += uint64(o.Accepted)
	a.Free()
	return o
}

// Free discards a sample. It runs on the engine's thread.
func (a *Pending) Free() {
	if a == nil || a.result == nil {
		return
	}
	if a.result.unread--; a.result.unread == 0 {
		mlx.Free(a.result.Arrays()...)
	}
	a.result = nil
}

// computeOutcomes accepts the drafts of each request up to the first that differs from the token of its row.
func (v *Result) computeOutcomes(tokens []int32) []Outcome {
	logs := v.logProbs.read(tokens)
	out := make([]Outcome, len(v.requests))
	for i, a := range v.requests {
		row := v.starts[i]
		n := 0
		for n < a.Rows()-1 && tokens[row+n] == a.Drafts[n] {
			n++
		}
		out[i] = Outcome{Accepted: n, Next: tokens[row+n]}
		if a.TopLogProbs >= 0 {
			out[i].logProbs = logs[row : row+n+1]
		}
	}
	return out
}

// Unread returns the tokens of samples without drafts, int32 [len(samples)]. It does not read them, so the next
// step can be enqueued while they are computed.
func Unread(samples []*Pending) *mlx.Array {
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
