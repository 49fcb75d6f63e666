package runtime

import (
	"github.com/ingotml/ingot/mlx"
)

// LogProb is how likely the model found a token, by its own scores: before bias, penalties, masks and temperature.
type LogProb struct {
	ID      int32       `json:"i"`
	LogProb float32     `json:"l"`           // the natural logarithm
	Top     []TokenProb `json:"t,omitempty"` // the likeliest tokens at its place, in descending order
}

// TokenProb is a token and the logarithm of its probability.
type TokenProb struct {
	ID      int32   `json:"i"`
	LogProb float32 `json:"l"`
}

// leastLogProb stands for what is even less likely, and for no number: JSON has neither, and OpenAI's API uses this one.
const leastLogProb = -9999

func logProb(v float32) float32 {
	if v > leastLogProb {
		return v
	}
	return leastLogProb
}

// MostTopLogProbs bounds Request.TopLogProbs.
const MostTopLogProbs = 100

// logs are the log-probabilities of rows whose ask wants them.
type logProbs struct {
	rows   []row
	all    int        // rows of the verdict
	chosen *mlx.Array // [rows, 1]
	top    *mlx.Array // [rows, most that a row wants], or nil
	ids    *mlx.Array // uint32, of top
}

// newLogs gives nil where nobody wants any. said are the tokens that follow all rows.
func newLogProbs(logits *mlx.Array, rows []row, tokens *mlx.Array) *logProbs {
	l := &logProbs{all: len(rows)}
	most := 0
	for _, r := range rows {
		if r.topLogProbs >= 0 {
			l.rows = append(l.rows, r)
			most = max(most, r.topLogProbs)
		}
	}
	if len(l.rows) == 0 {
		return nil
	}
	x := mlx.AsType(selectRows(logits, l.rows), mlx.Float32)
	if len(l.rows) < len(rows) {
		tokens = mlx.Take(tokens, column(x.Thread(), l.rows, func(r row) int32 { return int32(r.index) }, len(l.rows)), 0)
	}
	norm := mlx.LogSumExp(x, true, -1)
	l.chosen = mlx.Subtract(mlx.TakeAlongAxis(x, mlx.Reshape(tokens, len(l.rows), 1), -1), norm)
	if most > 0 {
		best := mlx.Largest(x, min(most, x.Dim(-1)))
		l.top, l.ids = mlx.Subtract(best[0], norm), best[1]
	}
	return l
}

// arrays are what is to be evaluated.
func (l *logProbs) arrays() []*mlx.Array {
	if l == nil {
		return nil
	}
	return []*mlx.Array{l.chosen, l.top, l.ids}
}

// read gives those of all rows of the verdict, where said are the tokens that follow them.
func (l *logProbs) read(tokens []int32) []LogProb {
	if l == nil {
		return nil
	}
	out := make([]LogProb, l.all)
	own := mlx.ToSlice[float32](l.chosen)
	var top []float32
	var ids []uint32
	width := 0
	if l.top != nil {
		top, ids, width = mlx.ToSlice[float32](l.top), mlx.ToSlice[uint32](l.ids), l.top.Dim(-1)
	}
	for i, r := range l.rows {
		p := LogProb{ID: tokens[r.index], LogProb: logProb(own[i])}
		for j := i * width; j < i*width+min(r.topLogProbs, width); j++ {
			p.Top = append(p.Top, TokenProb{int32(ids[j]), logProb(top[j])})
		}
		out[r.index] = p
	}
	return out
}
