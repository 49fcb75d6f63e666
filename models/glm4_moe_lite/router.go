package glm4_moe_lite

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// router chooses experts by their sigmoid scores in float32. A correction bias affects the choice but not the weights.
type router struct {
	scores            *nn.Linear
	correction        *mlx.Array // float32 [experts]
	perToken          int
	groups, topGroups int
	sumToOne          bool
	scaling           float64
}

func newRouter(w *nn.Weights, name string, c *arch.Glm4MoeLite) *router {
	r := &router{
		scores:   nn.NewLinear(w, name, c.Experts.Count, c.Hidden, false),
		perToken: c.Experts.PerToken,
		groups:   c.Groups, topGroups: c.TopGroups,
		sumToOne: c.Experts.NormTopK,
		scaling:  c.Scaling,
	}
	if bias := w.Take(name+".e_score_correction_bias", c.Experts.Count); bias != nil {
		r.correction = w.Constant(mlx.AsType(bias, mlx.Float32))
	}
	return r
}

// route returns the experts, uint32 [T, k], of rows x [T, hidden] and their weights, float32 [T, k].
func (r *router) route(x *mlx.Array) (weights, chosen *mlx.Array) {
	scores := r.scores.Apply(mlx.AsType(x, mlx.Float32))
	both := mlx.ChooseExperts(scores, r.correction, r.perToken, r.groups, r.topGroups, true, r.sumToOne, r.scaling)
	return both[0], both[1]
}
