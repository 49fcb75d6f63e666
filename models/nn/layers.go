package nn

import "github.com/ingotml/ingot/mlx"

// Linear is y = x W^T + b.
type Linear struct {
	weight *mlx.Array // [out, in]
	bias   *mlx.Array // [out], or nil
}

// NewLinear is the one factory of linear layers: NAME.weight [out, in] and, if asked for, NAME.bias [out].
func NewLinear(w *Weights, name string, out, in int, bias bool) *Linear {
	l := &Linear{weight: w.Take(name+".weight", out, in)}
	if bias {
		l.bias = w.Take(name+".bias", out)
	}
	return l
}

// Apply maps [T, in] to [T, out].
func (l *Linear) Apply(x *mlx.Array) *mlx.Array {
	wt := mlx.Transpose(l.weight)
	if l.bias != nil {
		return mlx.AddMM(l.bias, x, wt, 1, 1)
	}
	return mlx.MatMul(x, wt)
}

// Embedding is a table of vectors, looked up by token and, where a model ties them, multiplied as the output head.
type Embedding struct{ weight *mlx.Array } // [vocab, hidden]

// NewEmbedding takes NAME.weight [vocab, hidden].
func NewEmbedding(w *Weights, name string, vocab, hidden int) *Embedding {
	return &Embedding{w.Take(name+".weight", vocab, hidden)}
}

// Lookup gives the vectors [T, hidden] of tokens [T].
func (e *Embedding) Lookup(tokens *mlx.Array) *mlx.Array { return mlx.Take(e.weight, tokens, 0) }

// Project gives the scores [T, vocab] of rows [T, hidden].
func (e *Embedding) Project(x *mlx.Array) *mlx.Array { return mlx.MatMul(x, mlx.Transpose(e.weight)) }

// RMSNorm divides rows by their root mean square and scales them.
type RMSNorm struct {
	weight *mlx.Array // [hidden]
	eps    float64
}

// NewRMSNorm takes NAME.weight [hidden].
func NewRMSNorm(w *Weights, name string, hidden int, eps float64) *RMSNorm {
	return &RMSNorm{w.Take(name+".weight", hidden), eps}
}

// Apply normalizes the last axis.
func (n *RMSNorm) Apply(x *mlx.Array) *mlx.Array { return mlx.RMSNorm(x, n.weight, n.eps) }

// SwiGLU is silu(gate) * up.
func SwiGLU(gate, up *mlx.Array) *mlx.Array { return mlx.Multiply(mlx.SiLU(gate), up) }
