package cache_test

import (
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// A layer that recurs hands its arrays from step to step, can go back to its start only, and keeps nothing when freed.
func TestState(t *testing.T) {
	mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
		c := cache.NewSequence([]cache.Kind{cache.Recurrent}).Layers[0].(*cache.State)
		if conv, delta := c.Arrays(); conv != nil || delta != nil || c.Offset() != 0 || len(c.State()) != 0 {
			t.Errorf("a new state: %v, %v at %d", conv, delta, c.Offset())
		}
		for i := range 3 {
			e.Scope(func() {
				c.Advance(mlx.Full(e, float64(i), mlx.BFloat16, 3, 5), mlx.Full(e, float64(10*i), mlx.Float32, 2, 4, 6), 2)
			})
		}
		conv, delta := c.Arrays()
		if got := conv.Float32s()[14]; got != 2 || c.Offset() != 6 {
			t.Errorf("convolution %v at %d, want 2 at 6", got, c.Offset())
		}
		if got := delta.Float32s()[47]; got != 20 {
			t.Errorf("memory %v, want 20", got)
		}
		for target, want := range map[int]bool{-1: false, 5: false, 6: true, 7: false} {
			if got := c.Rewind(target); got != want || c.Offset() != 6 {
				t.Errorf("rewind to %d: %v, offset %d", target, got, c.Offset())
			}
		}
		if !c.Rewind(0) || c.Offset() != 0 || len(c.State()) != 0 {
			t.Errorf("rewound to 0: offset %d, %d arrays", c.Offset(), len(c.State()))
		}
	}))
}
