package nn

import (
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/mlx"
)

// PlainExperts are experts without a gate, which square the positive part. They may read a projection of the rows.
type PlainExperts struct {
	up, down *bank
	in, out  *Linear // latent projections; nil means none
	own      *ownExperts
}

// newPlainExperts takes NAME.experts.up_proj [experts, intermediate, width] and NAME.experts.down_proj [experts, width,
// intermediate] and, for latent experts, NAME.fc1_latent_proj and NAME.fc2_latent_proj.
func newPlainExperts(w *Weights, name string, hidden int, c config.Mixture) *PlainExperts {
	width := c.Width(hidden)
	e := &PlainExperts{
		up:   newBank(w, name+".experts.up_proj", c.Experts.Count, c.Experts.Intermediate, width),
		down: newBank(w, name+".experts.down_proj", c.Experts.Count, width, c.Experts.Intermediate),
	}
	e.own = newOwnExperts(w, e.up)
	if c.Latent > 0 {
		e.in = NewLinear(w, name+".fc1_latent_proj", width, hidden, c.LatentBias)
		e.out = NewLinear(w, name+".fc2_latent_proj", hidden, width, c.LatentBias)
	}
	return e
}

// Apply is [Experts.Apply] for these experts.
func (e *PlainExperts) Apply(x, weights, chosen *mlx.Array, s Shared) *mlx.Array {
	if e.in == nil {
		return e.own.apply(x, weights, chosen, s, e.apply)
	}
	y := e.out.Apply(e.own.apply(e.in.Apply(x), weights, chosen, Shared{}, e.apply))
	if s.X == nil {
		return y
	}
	return mlx.Add(y, e.own.total(s.X, y.DType()))
}

func (e *PlainExperts) apply(x, weights, chosen *mlx.Array, s Shared) *mlx.Array {
	of, own := picks(x, chosen)
	if e.up.observing() {
		e.up.observe(mlx.Take(x, mlx.Flatten(of, 0, 1), 0), chosen)
	}
	h := mlx.ReLU2(e.up.apply(mlx.ExpandDims(x, 1), of, chosen, false))
	e.down.observe(mlx.Reshape(h, chosen.Size(), 1, -1), chosen)
	h = e.down.apply(mlx.Reshape(h, chosen.Size(), 1, -1), own, chosen, false)
	return mlx.CombineRows(h, weights, nil, nil, s.X, s.Gate)
}
