package runtime

import (
	"github.com/ingotml/ingot/mlx"
)

// draws tells whether drafts of a request are drawn. That keeps more of them than the likeliest tokens would, but what is said then depends
// on how many there are, which a seed has to rule out; and what is drawn beyond a format is of no use.
func (g *generation) drawsDrafts() bool {
	return g.sampler.Temperature > 0 && (g.sampler.Seed == nil || *g.sampler.Seed < 0) && g.constraint == nil
}

// guess gives a draft for each row of a draft model's scores [n, vocab], whose request has had so many drafts before it, int32 [n]: the
// likeliest token, or for requests that draw one that is drawn as theirs are. The latter have the probabilities that it was drawn with,
// float32 [1, vocab]; others have nil.
func draftTokens(logits *mlx.Array, of []*generation, drafts int) (tokens *mlx.Array, q []*mlx.Array) {
	q = make([]*mlx.Array, len(of))
	groups := map[samplingMode][]row{}
	for i, g := range of {
		s := samplingMode{}
		r := row{sampleRequest: &sampleRequest{sampler: &g.sampler}, index: i, position: g.sampler.position + uint64(drafts)}
		if g.drawsDrafts() {
			s = r.mode(logits.Dim(-1))
			s.edited = false
			s.nucleus = s.nucleus && s.k > 0 // it would have to be sorted; a wider choice is as good
		}
		groups[s] = append(groups[s], r)
	}
	var parts []*mlx.Array
	var order []int32
	for s, rows := range groups {
		own := selectRows(logits, rows)
		if s.draws {
			said, p := s.drawDrafts(own, rows)
			parts = append(parts, said)
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

// guess draws drafts of one shape, and gives the probabilities over the vocabulary.
func (s samplingMode) drawDrafts(logits *mlx.Array, rows []row) (tokens, q *mlx.Array) {
	t := logits.Thread()
	p, ids := s.candidates(logits, rows)
	p = s.trim(p, ids, rows)
	q = mlx.Divide(p, mlx.Sum(p, true, -1))
	tokens = tokensAt(draw(p, column(t, rows, func(r row) float32 { return r.sampler.uniform(drawDraft, r.position) })), ids)
	if ids != nil {
		q = mlx.PutAlongAxis(mlx.Zeros(t, mlx.Float32, logits.Shape()...), ids, q, -1)
	}
	return mlx.Reshape(tokens, len(rows)), q
}
