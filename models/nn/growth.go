package nn

import "github.com/ingotml/ingot/mlx"

// Growth multiplies the query at a position by 1 + Beta*ln(1 + floor((position+Shift)/Context)), so that attention
// stays sharp in long texts. A nil Growth changes nothing.
type Growth struct {
	Beta    float64
	Context int // positions up to which nothing changes, with Shift
	Shift   int
}

// NewGrowth returns nil if beta is 0.
func NewGrowth(beta float64, context int) *Growth {
	if beta == 0 {
		return nil
	}
	return &Growth{Beta: beta, Context: context}
}

// Apply scales the queries [T, heads, dim] of the rows that [Batch.Asked] selects.
func (g *Growth) Apply(b *Batch, q *mlx.Array) *mlx.Array {
	if g == nil {
		return q
	}
	within := true
	for _, s := range b.Segments {
		within = within && s.Pos+s.Len+g.Shift <= g.Context
	}
	if within {
		b.limitTo(g.Context - g.Shift)
		return q
	}
	return mlx.GrowRows(q, b.queryRows().Positions, g.Beta, g.Context, g.Shift)
}
