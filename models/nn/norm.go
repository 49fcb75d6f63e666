package nn

import "github.com/ingotml/ingot/mlx"

// Norm normalizes the last axis: an RMSNorm or a LayerNorm. A nil Norm changes nothing, for blocks without a norm.
type Norm struct {
	weight  *mlx.Array // [size], or nil
	stored  *mlx.Array // the weight in its own type
	bias    *mlx.Array // [size], or nil; of a LayerNorm
	eps     float64
	plusOne bool     // weights are offsets from 1
	centers bool     // subtracts the mean: a LayerNorm
	byHead  bool     // weights are [heads, size]
	divided *divided // the size is divided over ranks; of an RMSNorm
}

// NewRMSNorm takes NAME.weight [size]. GGUF files have norms in float32, whatever the other weights are: they become
// the type that is computed, so that activations keep it.
func NewRMSNorm(w *Weights, name string, size int, eps float64) *Norm {
	n := &Norm{weight: w.Take(name+".weight", size), eps: eps, divided: w.ranked(name + ".weight")}
	n.stored = n.weight
	if n.weight != nil && n.weight.DType() == mlx.Float32 && w.DType.Float() && w.DType != mlx.Float32 {
		n.weight = w.Constant(mlx.AsType(n.weight, w.DType))
	}
	return n
}

// PlainRMSNorm returns an RMSNorm without weights.
func PlainRMSNorm(eps float64) *Norm { return &Norm{eps: eps} }

// NewLayerNorm takes NAME.weight [size], and NAME.bias [size] if bias is set.
func NewLayerNorm(w *Weights, name string, size int, eps float64, bias bool) *Norm {
	n := &Norm{weight: w.Take(name+".weight", size), eps: eps, centers: true}
	if bias {
		n.bias = w.Take(name+".bias", size)
	}
	return n
}

// NewLayerNormPlusOne is NewLayerNorm with a bias, and weights that are offsets from 1.
func NewLayerNormPlusOne(w *Weights, name string, size int, eps float64) *Norm {
	n := NewLayerNorm(w, name, size, eps, true)
	if n.weight != nil {
		n.weight = w.constant(n.weight, func(a *mlx.Array) *mlx.Array { return mlx.AddScalar(a, 1) })
	}
	return n
}

// PlainLayerNorm returns a LayerNorm without weights, in float32.
func PlainLayerNorm(eps float64) *Norm { return &Norm{eps: eps, centers: true} }

// NewHeadNorm returns a LayerNorm of each head, without bias, in float32. It takes NAME.weight [heads, size].
func NewHeadNorm(w *Weights, name string, heads, size int, eps float64) *Norm {
	return &Norm{weight: w.Take(name+".weight", heads, size), eps: eps, centers: true, byHead: true}
}

// Wide returns the weight in float32; nil if it is missing.
func (n *Norm) Wide(w *Weights) *mlx.Array {
	if n.stored == nil {
		return nil
	}
	return w.Constant(mlx.AsType(n.stored, mlx.Float32))
}

// PlusOne makes an RMSNorm multiply by 1 + weight, in float32.
func (n *Norm) PlusOne() *Norm {
	n.plusOne, n.weight = true, n.stored
	return n
}

// Apply normalizes the last axis.
func (n *Norm) Apply(x *mlx.Array) *mlx.Array {
	switch {
	case n == nil:
		return x
	case n.divided != nil:
		by := mlx.Rsqrt(mlx.AddScalar(n.divided.meanSquares(x), n.eps))
		y := mlx.AsType(mlx.Multiply(mlx.AsType(x, mlx.Float32), by), x.DType())
		return mlx.AsType(mlx.Multiply(y, n.weight), x.DType())
	case n.byHead:
		y := mlx.LayerNorm(mlx.AsType(x, mlx.Float32), nil, nil, n.eps)
		return mlx.AsType(mlx.Multiply(y, mlx.AsType(n.weight, mlx.Float32)), x.DType())
	case n.centers:
		return mlx.LayerNorm(x, n.weight, n.bias, n.eps)
	case n.plusOne:
		return mlx.RMSNormPlusOne(x, n.weight, n.eps)
	}
	return mlx.RMSNorm(x, n.weight, n.eps)
}

// AddApply returns x+y and the normalized sum. If y is nil the sum is x.
func (n *Norm) AddApply(x, y *mlx.Array) (sum, normed *mlx.Array) {
	if y == nil {
		return x, n.Apply(x)
	}
	if !n.fuses() {
		sum = mlx.Add(x, y)
		return sum, n.Apply(sum)
	}
	both := mlx.AddRMSNorm(x, y, n.weight, n.eps, n.plusOne)
	return both[0], both[1]
}

// fuses reports whether the engine fuses the norm with what is before and after it.
func (n *Norm) fuses() bool { return n != nil && !n.centers && n.divided == nil }
