package nn

import "github.com/ingotml/ingot/mlx"

// MLP is a feed-forward block: Down(activation(Gate(x)) * Up(x)), or Down(activation(Up(x))) without a gate.
type MLP struct {
	Gate       *Linear // nil if the block is not gated
	Up, Down   *Linear
	Activation mlx.Activation
	Function   func(*mlx.Array) *mlx.Array // of a block without a gate; nil means Activation
	Limit      float64                     // of SiLU's gate from above and of Up(x) from both sides; 0 means none
}

// NewMLP takes NAME.gate_proj and NAME.up_proj [width, hidden] and NAME.down_proj [hidden, width].
func NewMLP(w *Weights, name string, hidden, width int, bias bool, activation mlx.Activation) *MLP {
	return &MLP{
		Gate:       NewLinear(w, name+".gate_proj", width, hidden, bias),
		Up:         NewLinear(w, name+".up_proj", width, hidden, bias),
		Down:       NewLinear(w, name+".down_proj", hidden, width, bias),
		Activation: activation,
	}
}

// NewPlainMLP takes up [width, hidden] and down [hidden, width] for a block without a gate.
func NewPlainMLP(
	w *Weights, up, down string, hidden, width int, bias bool, function func(*mlx.Array) *mlx.Array,
) *MLP {
	return &MLP{
		Up:       NewLinear(w, up, width, hidden, bias),
		Down:     NewLinear(w, down, hidden, width, bias),
		Function: function,
	}
}

// Apply maps [T, hidden] to [T, hidden].
func (m *MLP) Apply(x *mlx.Array) *mlx.Array { return m.down(Linears(x, m.in()...)) }

// AddApply implements [Network].
func (m *MLP) AddApply(n *Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, in := NormedLinears(n, x, y, m.in()...)
	return sum, m.down(in)
}

// in returns the layers that read the block's input.
func (m *MLP) in() []*Linear {
	if m.Gate == nil {
		return []*Linear{m.Up}
	}
	return []*Linear{m.Gate, m.Up}
}

// down maps the outputs of in to the block's.
func (m *MLP) down(in []*mlx.Array) *mlx.Array {
	if m.Gate != nil && m.Limit > 0 {
		return m.Down.Apply(mlx.ClampedSwiGLU(mlx.Concatenate(-1, in[0], in[1]), nil, nil, 1, m.Limit, 0))
	}
	if m.Gate != nil {
		return m.Down.ApplyGated(m.Activation, in[0], in[1])
	}
	if m.Function != nil {
		return m.Down.Apply(m.Function(in[0]))
	}
	return m.Down.Apply(activate(m.Activation, in[0]))
}

func activate(a mlx.Activation, x *mlx.Array) *mlx.Array {
	switch a {
	case mlx.SiLUActivation:
		return mlx.SiLU(x)
	case mlx.GELUActivation:
		return mlx.GELU(x)
	case mlx.GELUTanhActivation:
		return mlx.GELUTanh(x)
	}
	return mlx.Sigmoid(x)
}

// activations are the activation functions of plain feed-forward blocks, by their canonical names in arch.
var activations = map[string]func(*mlx.Array) *mlx.Array{
	"silu": mlx.SiLU, "gelu": mlx.GELU, "gelu_pytorch_tanh": mlx.GELUTanh, "relu": ReLU, "relu2": mlx.ReLU2,
}

// ActivationOf returns the activation function that a configuration names.
func ActivationOf(name string) func(*mlx.Array) *mlx.Array { return activations[name] }

// ReLU returns the positive part.
func ReLU(x *mlx.Array) *mlx.Array { return mlx.MaximumScalar(x, 0) }
