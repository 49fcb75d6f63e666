package nn

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/shard"
)

// ErrWeights is wrapped by every error about tensors that do not match the configuration.
var ErrWeights = errors.New("weights do not match the model")

// Tensor is a weight in its stored format: plain, or packed by a quantization.
type Tensor struct {
	Array  *mlx.Array  // the elements; uint32 codes if packed
	Packed *Packed     // nil if plain
	Part   *shard.Part // of the whole tensor that this is; nil = all of it
}

// Packed describes how codes are decoded, in the engine's terms.
type Packed struct {
	Scales *mlx.Array
	Biases *mlx.Array // of affine formats
	Mode   mlx.QuantMode
	Bits   int
	Group  int
	Global float32 // nvfp4: a factor of all elements; 0 means none
	Across bool    // the matrices are [in, out], see [Weights.Across]
}

// factor returns the factor that products with the weight must be multiplied by.
func (t *Tensor) factor() float64 {
	if t.Packed == nil || t.Packed.Global == 0 {
		return 1
	}
	return float64(t.Packed.Global)
}

// packing returns the parameters of the format. Format -1 is plain.
func (t *Tensor) packing() (format, group, bits int) {
	if p := t.Packed; p != nil {
		return int(p.Mode), p.Group, p.Bits
	}
	return -1, 0, 0
}

// Shape returns the shape of the weights, not of their codes.
func (t *Tensor) Shape() []int {
	if t.Packed == nil {
		return t.Array.Shape()
	}
	shape := slices.Clone(t.Array.Shape())
	shape[len(shape)-1] = shape[len(shape)-1] * 32 / t.Packed.Bits
	return shape
}

// inverseLengths returns 1 divided by the length of each row [out, in], in float32.
func (t *Tensor) inverseLengths() *mlx.Array {
	rows := t.Array
	if p := t.Packed; p != nil {
		rows = mlx.Dequantize(rows, p.Scales, p.Biases, p.Group, p.Bits, p.Mode, nil, mlx.Float32)
		rows = mlx.MultiplyScalar(rows, t.factor())
	}
	return mlx.Rsqrt(mlx.Sum(mlx.Square(mlx.AsType(rows, mlx.Float32)), false, 1))
}

func (t *Tensor) arrays() []*mlx.Array {
	if t.Packed == nil {
		return []*mlx.Array{t.Array}
	}
	return []*mlx.Array{t.Array, t.Packed.Scales, t.Packed.Biases}
}

// Weights provides a model's tensors by name and owns their arrays until Free. It keeps the first error, so a builder
// can take all tensors and check Err once.
type Weights struct {
	DType mlx.DType // of activations: the type of the plain weights

	observer Observer        // of the inputs of linear layers; nil means none
	ranks    *mlx.Group      // that have parts of the tensors; nil means that these are whole
	stage    *Stage          // of a pipeline; nil means that the model has all layers
	absent   map[string]bool // tensors that only other ranks have

	tensors map[string]*Tensor
	owned   []*mlx.Array
	groups  []*mlx.Layers
	taken   map[string]bool
	err     error
}

// NewWeights takes ownership of tensors of kept arrays, by their canonical names.
func NewWeights(dtype mlx.DType, tensors map[string]*Tensor) *Weights {
	w := &Weights{DType: dtype, tensors: tensors, taken: map[string]bool{}}
	for _, t := range tensors {
		w.owned = append(w.owned, t.arrays()...)
	}
	return w
}

// Over states that tensors with a Part are those of this rank of a group. Layers that are built then add up what the
// ranks compute. absent are the tensors that only other ranks have: a model gets nil for them, and must not use them.
func (w *Weights) Over(ranks *mlx.Group, absent map[string]bool) *Weights {
	w.ranks, w.absent = ranks, absent
	return w
}

// Constant takes ownership of an array that a model computes when it is built.
func (w *Weights) Constant(a *mlx.Array) *mlx.Array {
	w.owned = append(w.owned, mlx.Keep(a))
	return a
}

// noFactor rejects a global factor of a tensor that is not used by a linear layer.
func (w *Weights) noFactor(name string, t *Tensor) {
	if t != nil && t.factor() != 1 {
		w.fail("tensor %s has a global scale, which only weights of linear layers can have", name)
	}
}

// Bytes returns the size of all tensors and constants.
func (w *Weights) Bytes() (n int64) {
	for _, a := range w.owned {
		if a != nil { // such as the biases of a format without them
			n += int64(a.Bytes())
		}
	}
	return n
}

// Free frees all tensors and constants.
func (w *Weights) Free() {
	for _, g := range w.groups {
		g.Free()
	}
	w.groups = nil
	mlx.Free(w.owned...)
}

// Has reports whether a tensor exists, for optional parts of a model.
func (w *Weights) Has(name string) bool { return w.tensors[name] != nil }

// Take returns a plain tensor, which must exist with the given shape.
func (w *Weights) Take(name string, shape ...int) *mlx.Array {
	t := w.Matrix(name, shape...)
	if t == nil {
		return nil
	}
	if t.Packed != nil {
		w.fail("tensor %s is quantized, but the model needs it unquantized", name)
	}
	return t.Array
}

// Table returns a plain tensor [any, width].
func (w *Weights) Table(name string, width int) *mlx.Array {
	rows := 0
	if t := w.tensors[name]; t != nil && len(t.Shape()) == 2 {
		rows = t.Shape()[0]
	}
	return w.Take(name, rows, width)
}

// Matrix returns a tensor that may be packed. It must exist with the given shape, or be a rank's part of one. Matrix
// returns nil after an error, and for a tensor that only other ranks have.
func (w *Weights) Matrix(name string, shape ...int) *Tensor {
	t, ok := w.tensors[name]
	w.taken[name] = true
	switch {
	case w.absent[name]:
		return nil
	case !ok:
		w.fail("tensor %s is missing", name)
		return nil
	case !slices.Equal(t.Shape(), ofWhole(t, shape)):
		w.fail("tensor %s has shape %v, want %v", name, t.Shape(), ofWhole(t, shape))
		return nil
	}
	return t
}

// Err returns the first error. Tensors that were not taken are an error: a model takes all tensors of its table.
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

// Float32 returns a constant: f of an array in float32, or the array itself if f is nil. It returns nil for nil.
func (w *Weights) Float32(a *mlx.Array, f func(*mlx.Array) *mlx.Array) *mlx.Array {
	if a == nil {
		return nil
	}
	return w.constant(a, func(a *mlx.Array) *mlx.Array {
		if a = mlx.AsType(a, mlx.Float32); f != nil {
			return f(a)
		}
		return mlx.Contiguous(a)
	})
}

// Reject records that a tensor's contents are invalid, and why.
func (w *Weights) Reject(name, why string) { w.fail("tensor %s %s", name, why) }

func (w *Weights) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format+": %w", append(args, ErrWeights)...)
	}
}

// Observer gets the inputs of linear layers while a model runs, for calibration. Its methods run on the engine's
// thread, inside a forward pass, and may evaluate their arguments, which they must not keep.
type Observer interface {
	// Input is called before layers of the given weights are applied to x [T, in]. Layers that are parts of one tensor
	// have one name.
	Input(weights []string, x *mlx.Array)
	// ExpertInput is called before rows x [N, in] are multiplied by the matrices of the chosen experts, uint32 [N], of a
	// stack of count matrices.
	ExpertInput(weight string, count int, x, chosen *mlx.Array)
}

// Observe sets the observer of all layers that were built, or will be built, from these weights; nil means none. While
// there is one, layers run without the fused operations that hide their inputs, so the outputs may differ by rounding.
func (w *Weights) Observe(o Observer) { w.observer = o }
