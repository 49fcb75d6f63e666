package glm4_moe_lite

import (
	"math"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// router chooses experts by sigmoids, which a bias corrects for the choice alone, in float32.
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

// route gives the weights, float32 [T, k], of the experts, uint32 [T, k], that rows x [T, hidden] pass.
func (r *router) route(x *mlx.Array) (weights, chosen *mlx.Array) {
	scores := mlx.Sigmoid(r.scores.Apply(mlx.AsType(x, mlx.Float32)))
	corrected := mlx.Add(scores, r.correction)
	if r.topGroups < r.groups {
		corrected = r.withinGroups(corrected)
	}
	chosen = mlx.Largest(corrected, r.perToken)[1]
	weights = mlx.TakeAlongAxis(scores, chosen, -1)
	if r.sumToOne {
		// The small number is the reference's: sums of nothing must not divide by zero.
		weights = mlx.Divide(weights, mlx.AddScalar(mlx.Sum(weights, true, -1), 1e-20))
	}
	return mlx.MultiplyScalar(weights, r.scaling), chosen
}

// withinGroups leaves to scores [T, experts] those of the groups whose two best add up to the most.
func (r *router) withinGroups(scores *mlx.Array) *mlx.Array {
	rows, experts := scores.Dim(0), scores.Dim(1)
	grouped := mlx.Reshape(scores, rows, r.groups, experts/r.groups)
	best := mlx.Largest(mlx.Sum(mlx.Largest(grouped, 2)[0], false, -1), r.topGroups)[1]
	mask := mlx.PutAlongAxis(mlx.Full(scores.Thread(), math.Inf(-1), mlx.Float32, rows, r.groups), best,
		mlx.Zeros(scores.Thread(), mlx.Float32, rows, r.topGroups), 1)
	return mlx.Reshape(mlx.Add(grouped, mlx.ExpandDims(mask, 2)), rows, experts)
}
