package sample

import (
	"slices"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
)

// leastLogProb is the least log-probability that is reported, and replaces -Inf and NaN, which JSON cannot encode.
// OpenAI's API uses this value.
const leastLogProb = -9999

func logProb(v float32) float32 {
	if v > leastLogProb {
		return v
	}
	return leastLogProb
}

// logProbs holds the log-probabilities of the rows whose request wants them.
type logProbs struct {
	rows   []row
	all    int        // number of rows of the Result
	chosen *mlx.Array // [rows, 1]
	top    *mlx.Array // [rows, largest TopLogProbs of a row], or nil
	ids    *mlx.Array // uint32, of top
}

// newLogProbs returns nil if no row wants log-probabilities. tokens are the sampled tokens of all rows.
func newLogProbs(logits *mlx.Array, rows []row, tokens *mlx.Array) *logProbs {
	l := &logProbs{all: len(rows)}
	most := 0
	for _, r := range rows {
		if r.TopLogProbs >= 0 {
			l.rows = append(l.rows, r)
			most = max(most, r.TopLogProbs)
		}
	}
	if len(l.rows) == 0 {
		return nil
	}
	x := selectRows(logits, l.rows)
	if len(l.rows) < len(rows) {
		tokens = mlx.Take(tokens, column(x.Thread(), l.rows, func(r row) int32 { return int32(r.index) }, len(l.rows)), 0)
	}
	l.of(x, tokens, most)
	return l
}

// of computes the log-probabilities of tokens, int32 [rows], and of the most likely ones, from logits [rows, vocab].
func (l *logProbs) of(logits, tokens *mlx.Array, most int) {
	x := mlx.AsType(logits, mlx.Float32)
	norm := mlx.LogSumExp(x, true, -1)
	l.chosen = mlx.Subtract(mlx.TakeAlongAxis(x, mlx.Reshape(tokens, x.Dim(0), 1), -1), norm)
	if most > 0 {
		best := mlx.Largest(x, min(most, x.Dim(-1)))
		l.top, l.ids = mlx.Subtract(best[0], norm), best[1]
	}
}

// Score returns the log-probability of the token that follows each row of logits, [len(next), vocab], with the given
// number of most likely tokens. It runs on the engine's thread and waits for the logits.
func Score(logits *mlx.Array, next []int32, top int) []runtime.LogProb {
	l := &logProbs{all: len(next)}
	l.of(logits, mlx.FromSlice(logits.Thread(), next), top)
	mlx.Eval(slices.DeleteFunc(l.arrays(), func(a *mlx.Array) bool { return a == nil })...)
	for i := range next {
		l.rows = append(l.rows, row{Request: &Request{TopLogProbs: top}, index: i})
	}
	return l.read(next)
}

// ScoreRows returns how many rows of logits are scored at a time: those of a whole chunk of a prompt could take more
// memory than the model's step.
func ScoreRows(vocab int) int { return max(1, mostScored/vocab) }

const mostScored = 1 << 24 // elements

// arrays returns the arrays to evaluate.
func (l *logProbs) arrays() []*mlx.Array {
	if l == nil {
		return nil
	}
	return []*mlx.Array{l.chosen, l.top, l.ids}
}

// read returns the log-probabilities of all rows of the Result, whose tokens are given.
func (l *logProbs) read(tokens []int32) []runtime.LogProb {
	if l == nil {
		return nil
	}
	out := make([]runtime.LogProb, l.all)
	own := mlx.ToSlice[float32](l.chosen)
	var top []float32
	var ids []uint32
	width := 0
	if l.top != nil {
		top, ids, width = mlx.ToSlice[float32](l.top), mlx.ToSlice[uint32](l.ids), l.top.Dim(-1)
	}
	for i, r := range l.rows {
		p := runtime.LogProb{ID: tokens[r.index], LogProb: logProb(own[i])}
		for j := i * width; j < i*width+min(r.TopLogProbs, width); j++ {
			p.Top = append(p.Top, runtime.TokenProb{ID: int32(ids[j]), LogProb: logProb(top[j])})
		}
		out[r.index] = p
	}
	return out
}
