package nn

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/mlx"
)

// ErrWeights is under every error of a model whose tensors are not what its configuration asks for.
var ErrWeights = errors.New("weights do not fit the model")

// Tensor is a weight as it is stored: plain, or packed by a quantization.
type Tensor struct {
	Array  *mlx.Array // the elements; uint32 codes where packed
	Packed *Packed    // nil where plain
}

// Packed is how codes become weights, as the engine names it.
type Packed struct {
	Scales *mlx.Array
	Biases *mlx.Array // of affine formats
	Mode   mlx.QuantMode
	Bits   int
	Group  int
	Global float32 // factor of all elements, of nvfp4; 0 is none
}

// factor is what the product with the weight is to be multiplied with.
func (t *Tensor) factor() float64 {
	if t.Packed == nil || t.Packed.Global == 0 {
		return 1
	}
	return float64(t.Packed.Global)
}

// packing is how the weight is packed, in numbers: format -1 is plain.
func (t *Tensor) packing() (format, group, bits int) {
	if p := t.Packed; p != nil {
		return int(p.Mode), p.Group, p.Bits
	}
	return -1, 0, 0
}

// Shape is that of the weights, not of their codes.
func (t *Tensor) Shape() []int {
	if t.Packed == nil {
		return t.Array.Shape()
	}
	shape := slices.Clone(t.Array.Shape())
	shape[len(shape)-1] = shape[len(shape)-1] * 32 / t.Packed.Bits
	return shape
}

func (t *Tensor) arrays() []*mlx.Array {
	if t.Packed == nil {
		return []*mlx.Array{t.Array}
	}
	return []*mlx.Array{t.Array, t.Packed.Scales, t.Packed.Biases}
}

// Weights hands out a model's tensors by name. The first problem sticks, so that a model reads all of its tensors and
// asks once. It owns the arrays: they live until Free.
type Weights struct {
	DType mlx.DType // of activations: that of the plain weights

	tensors map[string]*Tensor
	owned   []*mlx.Array
	groups  []*mlx.Layers
	taken   map[string]bool
	err     error
}

// NewWeights takes over tensors of kept arrays by their canonical names.
func NewWeights(dtype mlx.DType, tensors map[string]*Tensor) *Weights {
	w := &Weights{DType: dtype, tensors: tensors, taken: map[string]bool{}}
	for _, t := range tensors {
		w.owned = append(w.owned, t.arrays()...)
	}
	return w
}

// Constant takes over an array that a model computes when it is made.
func (w *Weights) Constant(a *mlx.Array) *mlx.Array {
	w.owned = append(w.owned, mlx.Keep(a))
	return a
}

// noFactor refuses a factor of the whole tensor where a tensor is no linear layer's.
func (w *Weights) noFactor(name string, t *Tensor) {
	if t != nil && t.factor() != 1 {
		w.fail("tensor %s has a scale of the whole tensor, which only weights of linear layers can have", name)
	}
}

// Bytes is the size of all tensors and constants.
func (w *Weights) Bytes() (n int64) {
	for _, a := range w.owned {
		if a != nil { // as biases that a format does not have
			n += int64(a.Bytes())
		}
	}
	return n
}

// Free ends the life of all tensors and constants.
func (w *Weights) Free() {
	for _, g := range w.groups {
		g.Free()
	}
	w.groups = nil
	mlx.Free(w.owned...)
}

// Has tells whether a tensor is there, for parts of a model that may be absent.
func (w *Weights) Has(name string) bool { return w.tensors[name] != nil }

// Take gives a plain tensor, which must be there with the given shape.
func (w *Weights) Take(name string, shape ...int) *mlx.Array {
	t := w.Matrix(name, shape...)
	if t == nil {
		return nil
	}
	if t.Packed != nil {
		w.fail("tensor %s is quantized, which it cannot be", name)
	}
	return t.Array
}

// Table gives a plain tensor [any, width].
func (w *Weights) Table(name string, width int) *mlx.Array {
	rows := 0
	if t := w.tensors[name]; t != nil && len(t.Shape()) == 2 {
		rows = t.Shape()[0]
	}
	return w.Take(name, rows, width)
}

// Matrix gives a tensor that may be packed; it must be there with the given shape. It is nil after a problem.
func (w *Weights) Matrix(name string, shape ...int) *Tensor {
	t, ok := w.tensors[name]
	w.taken[name] = true
	switch {
	case !ok:
		w.fail("tensor %s is absent", name)
		return nil
	case !slices.Equal(t.Shape(), shape):
		w.fail("tensor %s has shape %v, want %v", name, t.Shape(), shape)
		return nil
	}
	return t
}

// Err is the first problem, or that tensors were left over: a model reads all that its table names.
func (w *Weights) Err() error {
	if w.err != nil {
		return w.err
	}
	var left []string
	for name := range w.tensors {
		if !w.taken[name] {
			left = append(left, name)
		}
	}
	if len(left) > 0 {
		slices.Sort(left)
		return fmt.Errorf("tensor %s (of %d) is not used: %w", left[0], len(left), ErrWeights)
	}
	return nil
}

// Reject notes that what a tensor holds cannot be used, and why.
func (w *Weights) Reject(name, why string) { w.fail("tensor %s %s", name, why) }

func (w *Weights) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format+": %w", append(args, ErrWeights)...)
	}
}
