package nn

import "github.com/ingotml/ingot/mlx"

// Positions are learned vectors, one for each position, that are added to the embeddings. A nil Positions adds nothing.
type Positions struct {
	table *mlx.Array // [n, hidden]
}

// NewPositions takes NAME.weight [n, hidden].
func NewPositions(w *Weights, name string, n, hidden int) *Positions {
	return &Positions{table: w.Take(name+".weight", n, hidden)}
}

// After leaves out the first rows of the table.
func (p *Positions) After(w *Weights, rows int) *Positions {
	if p.table != nil {
		p.table = w.Constant(mlx.SliceAxis(p.table, 0, mlx.Range(rows, p.table.Dim(0))))
	}
	return p
}

// Add adds the vectors of the batch's positions to its rows [T, hidden]. Positions beyond the table have its last
// vector.
func (p *Positions) Add(b *Batch, x *mlx.Array) *mlx.Array {
	if p == nil {
		return x
	}
	n := p.table.Dim(0)
	within := true
	for _, s := range b.Segments {
		within = within && s.Pos+s.Len <= n
	}
	at := b.Positions
	if within {
		b.LimitTo(n)
	} else {
		b.LimitTo(1)
		at = mlx.MinimumScalar(at, float64(n-1))
	}
	return mlx.Add(x, mlx.TableRows(p.table, at, 1))
}

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

// Apply scales the queries [T, heads, dim] of the rows that [Batch.Queried] selects.
func (g *Growth) Apply(b *Batch, q *mlx.Array) *mlx.Array {
	if g == nil {
		return q
	}
	within := true
	for _, s := range b.Segments {
		within = within && s.Pos+s.Len+g.Shift <= g.Context
	}
	if within {
		b.LimitTo(g.Context - g.Shift)
		return q
	}
	return mlx.GrowRows(q, b.QueryRows().Positions, g.Beta, g.Context, g.Shift)
}
