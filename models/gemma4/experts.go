package gemma4

import (
	"math"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// experts run beside the dense network of a layer.
type experts struct {
	denseNorm *nn.RMSNorm // of what the network gives
	norm      *nn.RMSNorm // of what experts read
	bank      *nn.Experts
	givenNorm *nn.RMSNorm // of what experts give

	// The router reads the residual stream too.
	perToken   int
	routerNorm *mlx.Array // [hidden]
	eps        float64
	router     *nn.Linear
	scale      *mlx.Array // [experts]
}

func newExperts(w *nn.Weights, prefix string, c *arch.Gemma4) *experts {
	if c.Experts.Count == 0 {
		return nil
	}
	norm := func(name string) *nn.RMSNorm { return nn.NewRMSNorm(w, prefix+name, c.Hidden, c.NormEps) }
	e := &experts{
		denseNorm: norm("post_feedforward_layernorm_1"),
		norm:      norm("pre_feedforward_layernorm_2"),
		bank:      nn.NewExperts(w, prefix+"experts", c.Experts, c.Hidden).ThroughGELU(),
		givenNorm: norm("post_feedforward_layernorm_2"),
		perToken:  c.Experts.PerToken,
		eps:       c.NormEps,
		router:    nn.NewLinear(w, prefix+"router.proj", c.Experts.Count, c.Hidden, false),
		scale:     w.Take(prefix+"router.per_expert_scale", c.Experts.Count),
	}
	if scale := w.Take(prefix+"router.scale", c.Hidden); scale != nil {
		e.routerNorm = w.Constant(mlx.MultiplyScalar(scale, 1/math.Sqrt(float64(c.Hidden))))
	}
	return e
}

// beside gives what dense network and experts make of the residual stream h [T, hidden], to be added up; dense is what the
// network gave.
func (e *experts) beside(h, dense *mlx.Array) (x, y *mlx.Array) {
	weights, chosen := e.route(h)
	return e.denseNorm.Apply(dense), e.givenNorm.Apply(e.bank.Apply(e.norm.Apply(h), weights, chosen, nn.Shared{}))
}

// route chooses experts [T, k], and weights them, float32 [T, k]: by the softmax over all, normalized to those chosen, which
// is the softmax over those; then by a factor of each.
func (e *experts) route(h *mlx.Array) (weights, chosen *mlx.Array) {
	scores := e.router.Apply(mlx.RMSNorm(h, e.routerNorm, e.eps))
	top := mlx.Largest(mlx.AsType(scores, mlx.Float32), e.perToken)
	weights = mlx.Softmax(top[0], true, -1)
	return mlx.Multiply(weights, mlx.AsType(mlx.Take(e.scale, top[1], 0), mlx.Float32)), top[1]
}
