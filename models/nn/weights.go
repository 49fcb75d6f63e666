package nn

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/mlx"
)

// ErrWeights is under every error of a model whose tensors are not what its configuration asks for.
var ErrWeights = errors.New("weights do not fit the model")

// Weights hands out a model's tensors by name. The first problem sticks, so that a model reads all of its tensors and
// asks once. It owns the arrays: they live until Free.
type Weights struct {
	tensors map[string]*mlx.Array
	owned   []*mlx.Array
	taken   map[string]bool
	err     error
}

// NewWeights takes over kept tensors by their canonical names.
func NewWeights(tensors map[string]*mlx.Array) *Weights {
	w := &Weights{tensors: tensors, taken: map[string]bool{}}
	for _, a := range tensors {
		w.owned = append(w.owned, a)
	}
	return w
}

// Constant takes over an array that a model computes when it is made.
func (w *Weights) Constant(a *mlx.Array) *mlx.Array {
	w.owned = append(w.owned, mlx.Keep(a))
	return a
}

// Free ends the life of all tensors and constants.
func (w *Weights) Free() { mlx.Free(w.owned...) }

// Take gives a tensor, which must be there with the given shape.
func (w *Weights) Take(name string, shape ...int) *mlx.Array {
	a, ok := w.tensors[name]
	switch {
	case !ok:
		w.fail("tensor %s is absent", name)
	case !slices.Equal(a.Shape(), shape):
		w.fail("tensor %s is %v, want shape %v", name, a, shape)
	}
	w.taken[name] = true
	return a
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

func (w *Weights) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format+": %w", append(args, ErrWeights)...)
	}
}
