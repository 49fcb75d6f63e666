package nn

import (
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/mlx"
)

// Mixture is a mixture of experts that a router chooses for each row, with or without shared experts for all rows.
type Mixture struct {
	config     config.Mixture
	router     *Linear    // [experts, hidden]
	correction *mlx.Array // float32 [experts]; nil means none
	experts    interface {
		Apply(x, weights, chosen *mlx.Array, s Shared) *mlx.Array
	}
	gated  *Experts    // experts, if they have gates
	own    *ownExperts // nil: this rank has all
	shared *MLP        // nil if there is none
	share  *Linear     // [1, hidden]: the shared output is multiplied by the sigmoid of this score; nil means 1
}

// NewMixture takes NAME.gate, or the router's other name, NAME.experts and, as c says,
// the correction, NAME.shared_experts, or NAME.shared_expert and NAME.shared_expert_gate.
func NewMixture(w *Weights, name string, hidden int, c config.Mixture) *Mixture {
	routed := c.Experts.Count + c.Experts.Identity
	m := &Mixture{
		config: c,
		router: NewLinear(w, name+"."+c.Router.Named(), routed, hidden, c.Router.Bias),
	}
	if c.Plain {
		plain := newPlainExperts(w, name, hidden, c)
		m.experts, m.own = plain, plain.own
	} else {
		m.gated = NewExperts(w, name+".experts", c.Experts, hidden)
		m.experts, m.own = m.gated, m.gated.own
	}
	if c.Router.Correction {
		if bias := w.Take(name+"."+c.Router.CorrectionName(), routed); bias != nil {
			m.correction = w.Constant(mlx.AsType(bias, mlx.Float32))
		}
	}
	switch {
	case c.Plain:
		shared := name + ".shared_experts."
		m.shared = NewPlainMLP(w, shared+"up_proj", shared+"down_proj", hidden, c.Shared, c.SharedBias, mlx.ReLU2)
	case c.Shared > 0 && c.SharedGate:
		m.shared = NewMLP(w, name+".shared_expert", hidden, c.Shared, c.SharedBias, mlx.SiLUActivation)
		m.share = NewLinear(w, name+".shared_expert_gate", 1, hidden, false)
	case c.Shared > 0:
		m.shared = NewMLP(w, name+".shared_experts", hidden, c.Shared, c.SharedBias, mlx.SiLUActivation)
	}
	if m.shared != nil && m.own != nil {
		m.shared.Down.inPart()
	}
	return m
}

// NewNetwork is NewMixture for a layer with experts, and else takes the SwiGLU MLP of a dense one.
func NewNetwork(w *Weights, name string, c config.Common, intermediate int, m config.Mixture, sparse bool) Network {
	if sparse {
		return NewMixture(w, name, c.Hidden, m)
	}
	return NewMLP(w, name, c.Hidden, intermediate, c.MLPBias, mlx.SiLUActivation)
}

// AddApply implements [Network].
func (m *Mixture) AddApply(n *Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	if m.config.Router.Float32 {
		sum, x = n.AddApply(x, y)
		return sum, m.Apply(x)
	}
	layers := []*Linear{m.router}
	if m.shared != nil {
		layers = append(layers, m.shared.in()...)
	}
	if m.share != nil {
		layers = append(layers, m.share)
	}
	sum, x, in := NormedLinearsKept(n, x, y, layers...) // the experts also read the normalized sum
	var shared Shared
	if m.addsShared() {
		shared.X = m.scaled(m.shared.down(in[1:3]))
		if m.share != nil {
			shared.Gate = in[3]
		}
	}
	if m.config.Router.ScaleInput {
		return sum, m.gated.applyScaled(x, m.own.agreed(in[0]), m.config.Experts.PerToken, shared)
	}
	weights, chosen := m.choose(in[0])
	return sum, m.experts.Apply(x, weights, chosen, shared)
}

// Apply returns the block's output for normalized rows x [T, hidden]. The router computes in float32.
func (m *Mixture) Apply(x *mlx.Array) *mlx.Array {
	weights, chosen := m.choose(m.router.Apply(mlx.AsType(x, mlx.Float32)))
	shared := m.sharedOf(x)
	if m.config.Experts.Identity > 0 {
		parts := mlx.IdentityExperts(weights, chosen, m.config.Experts.Count)
		weights, chosen = parts[1], parts[2] // a place of another expert has weight 0
		if m.own.once() {
			own := mlx.AsType(mlx.Multiply(mlx.AsType(x, mlx.Float32), parts[0]), x.DType())
			if shared.X != nil {
				own = mlx.Add(own, shared.X)
			}
			shared.X = own
		}
	}
	return m.experts.Apply(x, weights, chosen, shared)
}

func (m *Mixture) choose(scores *mlx.Array) (weights, chosen *mlx.Array) {
	scores = m.own.agreed(scores)
	if limit := m.config.Router.SoftCap; limit > 0 {
		scores = mlx.Softcap(mlx.AsType(scores, mlx.Float32), limit)
	}
	return Choose(scores, m.correction, m.config.Experts, m.config.Router)
}

// sharedOf returns the output of the shared experts for rows x [T, hidden].
func (m *Mixture) sharedOf(x *mlx.Array) (s Shared) {
	if !m.addsShared() {
		return s
	}
	s.X = m.scaled(m.shared.Apply(x))
	if m.share != nil {
		s.Gate = m.share.Apply(x)
	}
	return s
}

// addsShared reports whether this rank adds the output of shared experts, or its share of that.
func (m *Mixture) addsShared() bool {
	return m.shared != nil && (m.shared.Down.summed != nil || m.own.once())
}

// scaled multiplies the output of the shared experts.
func (m *Mixture) scaled(x *mlx.Array) *mlx.Array {
	if m.config.SharedScale == 0 {
		return x
	}
	return mlx.MultiplyScalar(x, m.config.SharedScale)
}
