package deepseek_v4

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// mixture is a mixture of experts with one expert for all rows. Scores choose the others, or the row's token.
type mixture struct {
	router     *nn.Linear
	correction *mlx.Array // float32 [experts]; nil if tokens choose
	byToken    *mlx.Array // uint32 [vocab, k]; nil if scores choose
	experts    *nn.Experts
	shared     *nn.MLP
	k          int
	scaling    float64
}

func newMixture(w *nn.Weights, name string, c *arch.DeepseekV4, hash bool) *mixture {
	x := c.Mixture
	m := &mixture{
		router:  nn.NewLinear(w, name+".gate", x.Experts.Count, c.Hidden, false),
		experts: nn.NewExperts(w, name+".experts", x.Experts, c.Hidden),
		shared:  nn.NewMLP(w, name+".shared_experts", c.Hidden, x.Shared, false, mlx.SiLUActivation),
		k:       x.Experts.PerToken,
		scaling: x.Router.Scaling,
	}
	m.shared.Limit = x.Experts.Clamp.Limit
	if hash {
		if table := w.Take(name+".gate.tid2eid", c.Vocab, m.k); table != nil {
			last := mlx.FromSlice(table.Thread(), []uint32{uint32(x.Experts.Count - 1)}) // a table may hold anything
			m.byToken = w.Constant(mlx.Contiguous(mlx.Minimum(mlx.AsType(table, mlx.Uint32), last)))
		}
	} else if bias := w.Take(name+".gate.e_score_correction_bias", x.Experts.Count); bias != nil {
		m.correction = w.Constant(mlx.AsType(bias, mlx.Float32))
	}
	return m
}

// apply returns the block's output for normalized rows x [T, hidden] of tokens [T].
func (m *mixture) apply(tokens, x *mlx.Array) *mlx.Array {
	scores := mlx.Sqrt(mlx.Softplus(m.router.Apply(mlx.AsType(x, mlx.Float32))))
	var chosen *mlx.Array
	if m.byToken != nil {
		chosen = mlx.Take(m.byToken, tokens, 0)
	} else {
		chosen = mlx.Largest(mlx.Add(scores, m.correction), m.k)[1]
	}
	weights := mlx.TakeAlongAxis(scores, chosen, 1)
	weights = mlx.Divide(weights, mlx.AddScalar(mlx.Sum(weights, true, 1), 1e-20))
	return m.experts.Apply(x, mlx.MultiplyScalar(weights, m.scaling), chosen, nn.Shared{X: m.shared.Apply(x)})
}
