package sample

import (
	"github.com/ingotml/ingot/mlx"
)

// DraftRow is the request of one row of a draft model's logits.
type DraftRow struct {
	Sampler *Sampler
	Drawn   bool // draw from the draft's distribution; else take the most likely token
}

// Drafts samples a draft token for each row of a draft model's logits [n, vocab], int32 [n]: the most likely
// token, or for a drawn row, a token drawn with the request's sampling parameters. q holds the distribution of each
// drawn token, float32 [1, vocab], and nil for others. drafts is the number of tokens that were drafted before in this
// round.
func Drafts(logits *mlx.Array, of []DraftRow, drafts int) (tokens *mlx.Array, q []*mlx.Array) {
	q = make([]*mlx.Array, len(of))
	groups := map[samplingMode][]row{}
	for i, d := range of {
		s := samplingMode{}
		r := row{Request: &Request{Sampler: d.Sampler}, index: i, position: d.Sampler.position + uint64(drafts)}
		if d.Drawn {
			s = r.mode(logits.Dim(-1))
			s.edited = false
			// typical_p or top_p without top_k would need a sort; a wider q is valid too.
			s.typical, s.nucleus = s.typical && s.k > 0, s.nucleus && s.k > 0
		}
		groups[s] = append(groups[s], r)
	}
	var parts []*mlx.Array
	var order []int32
	for s, rows := range groups {
		own := selectRows(logits, rows)
		if s.draws {
			drafts, p := s.drawDrafts(own, rows)
			parts = append(parts, drafts)
			for i, r := range rows {
				q[r.index] = mlx.SliceAxis(p, 0, mlx.Range(i, i+1))
			}
		} else {
			parts = append(parts, mlx.AsType(mlx.ArgMax(own, -1, false), mlx.Int32))
		}
		for _, r := range rows {
			order = append(order, int32(r.index))
		}
	}
	return inOrder(order, parts...), q
}

// drawDrafts draws drafts for rows of one mode. It also returns the distributions over the vocabulary.
func (s samplingMode) drawDrafts(logits *mlx.Array, rows []row) (tokens, q *mlx.Array) {
	t := logits.Thread()
	p, ids := s.candidates(logits, rows)
	p = s.trim(p, ids, rows)
	q = mlx.Divide(p, mlx.Sum(p, true, -1))
	uniforms := column(t, rows, func(r row) float32 { return r.Sampler.uniform(drawDraft, r.position) })
	tokens = tokensAt(draw(p, uniforms), ids)
	if ids != nil {
		q = mlx.PutAlongAxis(mlx.Zeros(t, mlx.Float32, logits.Shape()...), ids, q, -1)
	}
	return mlx.Reshape(tokens, len(rows)), q
}
