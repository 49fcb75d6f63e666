package nn

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
)

// MoE is a mixture of experts that a softmax router chooses for each row, with or without a shared expert for all rows.
type MoE struct {
	router  *Linear // [experts, hidden]
	experts *Experts
	choice  arch.Experts
	shared  *MLP    // nil if there is none
	share   *Linear // [1, hidden]: the shared expert's output is multiplied by the sigmoid of this score
}

// NewMoE takes NAME.gate and NAME.experts. If shared, the width of the shared expert, is not 0 it also takes
// NAME.shared_expert and NAME.shared_expert_gate.
func NewMoE(w *Weights, name string, hidden int, e arch.Experts, shared int) *MoE {
	m := &MoE{
		router:  NewLinear(w, name+".gate", e.Count, hidden, false),
		experts: NewExperts(w, name+".experts", e, hidden),
		choice:  e,
	}
	if shared > 0 {
		m.shared = NewMLP(w, name+".shared_expert", hidden, shared, false, mlx.SiLUActivation)
		m.share = NewLinear(w, name+".shared_expert_gate", 1, hidden, false)
	}
	return m
}

// AddApply implements [Network].
func (m *MoE) AddApply(n *Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	layers := []*Linear{m.router}
	if m.shared != nil {
		layers = append(append(layers, m.shared.in()...), m.share)
	}
	sum, x, in := NormedLinearsKept(n, x, y, layers...) // the experts also read the normalized sum
	var all Shared
	if m.shared != nil {
		all = Shared{X: m.shared.down(in[1:3]), Gate: in[3]}
	}
	weights, chosen := TopSoftmax(in[0], m.choice.PerToken, m.choice.NormTopK)
	return sum, m.experts.Apply(x, weights, chosen, all)
}
