package deepseek_v4

import (
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/types"
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
	config     config.Mixture
}

func newMixture(w *nn.Weights, name string, c *types.DeepseekV4, hash bool) *mixture {
	x := c.Mixture
	m := &mixture{
		router:  nn.NewLinear(w, name+".gate", x.Experts.Count, c.Hidden, false),
		experts: nn.NewExperts(w, name+".experts", x.Experts, c.Hidden),
		shared:  nn.NewMLP(w, name+".shared_experts", c.Hidden, x.Shared, false, mlx.SiLUActivation),
		config:  x,
	}
	m.shared.Limit = x.Experts.Clamp.Limit
	m.shared.Beside(m.experts)
	if hash {
		if table := w.Take(name+".gate.tid2eid", c.Vocab, x.Experts.PerToken); table != nil {
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
	scores, given := m.router.Apply(mlx.AsType(x, mlx.Float32)), (*mlx.Array)(nil)
	if m.byToken != nil {
		given = mlx.Take(m.byToken, tokens, 0)
	}
	weights, chosen := nn.ChooseGiven(scores, m.correction, given, m.config.Experts, m.config.Router)
	return m.experts.Apply(x, weights, chosen, nn.Shared{X: m.experts.Share(m.shared, x)})
}
