package gemma4

import (
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// experts run in parallel with the dense MLP of a layer.
type experts struct {
	denseNorm *nn.Norm // of the dense MLP's output
	norm      *nn.Norm // of the experts' input
	bank      *nn.Experts
	outNorm   *nn.Norm // of the experts' output

	// The router also reads the residual stream.
	perToken   int
	routerNorm *mlx.Array // [hidden]
	eps        float64
	router     *nn.Linear
	scale      *mlx.Array // [experts]
}

func newExperts(w *nn.Weights, prefix string, c *types.Gemma4) *experts {
	if c.Experts.Count == 0 {
		return nil
	}
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, prefix+name, c.Hidden, c.NormEps) }
	e := &experts{
		denseNorm: norm("post_feedforward_layernorm_1"),
		norm:      norm("pre_feedforward_layernorm_2"),
		bank:      nn.NewExperts(w, prefix+"experts", c.Experts, c.Hidden).ThroughGELU(),
		outNorm:   norm("post_feedforward_layernorm_2"),
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

// branches returns the normalized outputs of the dense MLP and of the experts for the residual stream h [T, hidden].
// dense is the MLP's output. The caller adds the results.
func (e *experts) branches(h, dense *mlx.Array) (x, y *mlx.Array) {
	weights, chosen := e.route(h)
	return e.denseNorm.Apply(dense), e.outNorm.Apply(e.bank.Apply(e.norm.Apply(h), weights, chosen, nn.Shared{}))
}

// route chooses experts [T, k] and their weights, float32 [T, k]. The reference normalizes the softmax over all experts
// to those chosen, which equals the softmax over the chosen ones. Each weight is then multiplied by a factor of its
// expert.
func (e *experts) route(h *mlx.Array) (weights, chosen *mlx.Array) {
	scores := e.router.Apply(mlx.RMSNorm(h, e.routerNorm, e.eps))
	top := mlx.Largest(mlx.AsType(scores, mlx.Float32), e.perToken)
	weights = mlx.Softmax(top[0], true, -1)
	return mlx.Multiply(weights, mlx.AsType(mlx.Take(e.scale, top[1], 0), mlx.Float32)), top[1]
}
