package nn

import "github.com/ingotml/ingot/mlx"

// activations are the activation functions of plain feed-forward blocks, by their canonical names in arch.
var activations = map[string]func(*mlx.Array) *mlx.Array{
	"silu": mlx.SiLU, "gelu": mlx.GELU, "gelu_pytorch_tanh": mlx.GELUTanh, "relu": ReLU, "relu2": mlx.ReLU2,
}

// ActivationOf returns the activation function that a configuration names.
func ActivationOf(name string) func(*mlx.Array) *mlx.Array { return activations[name] }

// ReLU returns the positive part.
func ReLU(x *mlx.Array) *mlx.Array { return mlx.MaximumScalar(x, 0) }
