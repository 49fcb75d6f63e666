package runtime

import (
	"github.com/ingotml/ingot/mlx"
)

// draws tells whether drafts of a request are drawn. That keeps more of them than the likeliest tokens would, but what is said then depends
// on how many there are, which a seed has to rule out; and what is drawn beyond a format is of no use.
func (g *generation) draws() bool {
	return g.sampler.Temperature > 0 && (g.sampler.Seed == nil || *g.sampler.Seed < 0) && g.rules == nil
}

// guess gives a draft for each row of a draft model's scores [n, vocab], whose request has had so many drafts before it, int32 [n]: the
// likeliest token, or for requests that draw one that is drawn as theirs are. The latter have the probabilities that it was drawn with,
// float32 [1, vocab]; others have nil.
func guess(scores *mlx.Array, of []*generation, drafts int) (tokens *mlx.Array, q []*mlx.Array) {
	q = make([]*mlx.Array, len(of))
	groups := map[shape][]row{}
	for i, g := range of {
		s := shape{}
		r := row{ask: &ask{s: &g.sampler}, number: i, place: g.sampler.drawn + uint64(drafts)}
		if g.draws() {
			s = r.shape(scores.Dim(-1))
			s.edited = false
			s.nucleus = s.nucleus && s.k > 0 // it would have to be sorted; a wider choice is as good
		}
		groups[s] = append(groups[s], r)
	}
	var parts []*mlx.Array
	var order []int32
	for s, rows := range groups {
		own := pick(scores, rows)
		if s.draws {
			said, p := s.guess(own, rows)
			parts = append(parts, said)
			for i, r := range rows {
				q[r.number] = mlx.SliceAxis(p, 0, mlx.Range(i, i+1))
			}
		} else {
			parts = append(parts, mlx.AsType(mlx.ArgMax(own, -1, false), mlx.Int32))
		}
		for _, r := range rows {
			order = append(order, int32(r.number))
		}
	}
	return inOrder(order, parts...), q
}

// guess draws drafts of one shape, and gives the probabilities over the vocabulary.
func (s shape) guess(scores *mlx.Array, rows []row) (tokens, q *mlx.Array) {
	t := scores.Thread()
	p, ids := s.weigh(scores, rows)
	p = s.trim(p, ids, rows)
	q = mlx.Divide(p, mlx.Sum(p, true, -1))
	tokens = named(draw(p, column(t, rows, func(r row) float32 { return r.s.chance(drawDraft, r.place) })), ids)
	if ids != nil {
		q = mlx.PutAlongAxis(mlx.Zeros(t, mlx.Float32, scores.Shape()...), ids, q, -1)
	}
	return mlx.Reshape(tokens, len(rows)), q
}
