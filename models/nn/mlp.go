package nn

import "github.com/ingotml/ingot/mlx"

// MLP is a gated feed-forward block: down(activation(gate(x)) * up(x)).
type MLP struct {
	gate, up, down *Linear
	activation     func(gate, up *mlx.Array) *mlx.Array
}

// NewMLP takes NAME.gate_proj and NAME.up_proj [width, hidden] and NAME.down_proj [hidden, width]. The activation joins gate
// and up, as [mlx.SwiGLU] does.
func NewMLP(w *Weights, name string, hidden, width int, bias bool, activation func(gate, up *mlx.Array) *mlx.Array) *MLP {
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
	return m.down.Apply(m.activation(gateUp[0], gateUp[1]))
}
