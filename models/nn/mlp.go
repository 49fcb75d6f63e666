package nn

import "github.com/ingotml/ingot/mlx"

// MLP is a gated feed-forward block: down(activation(gate(x)) * up(x)).
type MLP struct {
	gate, up, down *Linear
	activation     mlx.Activation
}

// NewMLP takes NAME.gate_proj and NAME.up_proj [width, hidden] and NAME.down_proj [hidden, width].
func NewMLP(w *Weights, name string, hidden, width int, bias bool, activation mlx.Activation) *MLP {
	return &MLP{
		gate:       NewLinear(w, name+".gate_proj", width, hidden, bias),
		up:         NewLinear(w, name+".up_proj", width, hidden, bias),
		down:       NewLinear(w, name+".down_proj", hidden, width, bias),
		activation: activation,
	}
}

// Apply maps [T, hidden] to [T, hidden].
func (m *MLP) Apply(x *mlx.Array) *mlx.Array {
	gateUp := Linears(x, m.gate, m.up)
	return m.down.ApplyGated(m.activation, gateUp[0], gateUp[1])
}

// AddApply returns x+y, and the output of the block on the normalized sum. If y is nil the sum is x.
func (m *MLP) AddApply(n *RMSNorm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, gateUp := NormedLinears(n, x, y, m.gate, m.up)
	return sum, m.down.ApplyGated(m.activation, gateUp[0], gateUp[1])
}
