package mlx_test

import (
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

func live(t *testing.T) (n int64) {
	t.Helper()
	mlxtest.Do(t, func(e *mlx.Thread) { n = e.Memory().Arrays })
	return n
}

func TestScopesFree(t *testing.T) {
	before := live(t)
	var kept, lost *mlx.Array
	mlxtest.Do(t, func(e *mlx.Thread) {
		outer := mlx.Ones(e, mlx.Float32, 4)
		e.Scope(func() {
			lost = mlx.Add(outer, outer)
			kept = mlx.Keep(mlx.Add(lost, outer))
			if got := e.Memory().Arrays - before; got != 3 {
				t.Errorf("%d arrays in the inner scope, want 3", got)
			}
		})
		if got := e.Memory().Arrays - before; got != 2 {
			t.Errorf("%d arrays after the inner scope, want 2", got)
		}
	})
	if got := live(t) - before; got != 1 {
		t.Errorf("%d arrays after Do, want the kept one", got)
	}
	mlxtest.Do(t, func(*mlx.Thread) {
		if got := mlx.Sum(kept, false).Float32s()[0]; got != 12 {
			t.Errorf("the kept array sums to %v", got)
		}
	})
	wantError(t, mlxtest.Try(t, func(*mlx.Thread) { mlx.Add(kept, lost) }), "Add(float32[4]): the array was freed")
	mlxtest.Do(t, func(*mlx.Thread) { mlx.Free(kept, nil, lost, kept) })
	if got := live(t) - before; got != 0 {
		t.Errorf("%d arrays after Free", got)
	}
	wantError(t, mlxtest.Try(t, func(*mlx.Thread) { kept.Float32s() }), "the array was freed")
}

func TestScopesFreeOnFailure(t *testing.T) {
	before := live(t)
	err := mlxtest.Try(t, func(e *mlx.Thread) {
		x := mlx.Ones(e, mlx.Float32, 4)
		e.Scope(func() {
			mlx.Add(x, x)
			mlx.Reshape(x, 5)
		})
	})
	wantError(t, err, "Reshape(float32[4])")
	if got := live(t) - before; got != 0 {
		t.Errorf("%d arrays are left over", got)
	}
}

// Scopes also free their arrays on a panic that is not an *Error.
func TestScopesFreeOnPanic(t *testing.T) {
	before := live(t)
	mlxtest.Do(t, func(e *mlx.Thread) {
		func() {
			defer func() {
				if p := recover(); p != "a bug" {
					t.Errorf("recovered %v", p)
				}
			}()
			e.Scope(func() {
				mlx.Ones(e, mlx.Float32, 4)
				e.Scope(func() { mlx.Ones(e, mlx.Float32, 4); panic("a bug") })
			})
		}()
		if got := e.Memory().Arrays - before; got != 0 {
			t.Errorf("%d arrays are left over", got)
		}
		e.Scope(func() { mlx.Ones(e, mlx.Float32, 4) }) // the outer scope is current again
		if got := e.Memory().Arrays - before; got != 0 {
			t.Errorf("%d arrays are left over after the next scope", got)
		}
	})
}

func TestKeep(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		if got := mlx.Keep(); got != nil {
			t.Errorf("Keep() = %v", got)
		}
		x := mlx.Ones(e, mlx.Float32, 4)
		if got := mlx.Keep(x, nil); got != x {
			t.Errorf("Keep returned %v", got)
		}
		mlx.Free(x)
		mlx.Free()
	})
	wantError(t, mlxtest.Try(t, func(e *mlx.Thread) {
		x := mlx.Ones(e, mlx.Float32, 4)
		mlx.Free(x)
		mlx.Keep(x)
	}), "Keep(float32[4]): the array was freed")
}

// A copy shares no memory, however small the source's buffer is.
func TestCopyOwnsItsMemory(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		for _, n := range []int{8, 4096, 100_000} {
			x := mlx.Ones(e, mlx.Float32, n)
			mlx.Eval(x)
			part := mlx.Copy(mlx.Slice(x, mlx.Range(0, 2)))
			if got := mlx.BufferBytes(part); got != 8 {
				t.Errorf("a copy of 2 of %d elements keeps %d bytes alive", n, got)
			}
			whole := mlx.Copy(x)
			if one, two, both := mlx.BufferBytes(whole), mlx.BufferBytes(x), mlx.BufferBytes(whole, x); both != one+two {
				t.Errorf("a whole copy of %d elements shares memory: %d and %d bytes are %d", n, one, two, both)
			}
		}
		if got := mlx.BufferBytes(nil); got != 0 {
			t.Errorf("no arrays have %d bytes", got)
		}
	})
}

// What a result is computed from is freed as soon as it is used, so the peak does not grow with the steps.
func TestResultFreesWhatItIsMadeFrom(t *testing.T) {
	const elements, steps = 1 << 18, 20
	before := live(t)
	mlxtest.Do(t, func(e *mlx.Thread) {
		x := mlx.Ones(e, mlx.Float32, elements)
		mlx.Eval(x)
		y := e.Result(func() *mlx.Array {
			y := x
			for range steps {
				y = mlx.Add(mlx.Sin(y), x)
			}
			return y
		})
		if got := e.Memory().Arrays - before; got != 2 {
			t.Errorf("%d arrays, want the input and the result", got)
		}
		e.ResetPeak()
		active := e.Memory().Active
		mlx.Eval(y)
		if m := e.Memory(); m.Peak-active > 3*4*elements {
			t.Errorf("%d bytes more at the peak, an array has %d", m.Peak-active, 4*elements)
		}
		if same := e.Result(func() *mlx.Array { return x }); same != x || x.Float32s()[0] != 1 {
			t.Error("an array of the outer scope is not its own result")
		}
		kept := e.Result(func() *mlx.Array { return mlx.Keep(mlx.Add(x, x)) })
		mlx.Free(kept)
		if e.Result(func() *mlx.Array { return nil }) != nil {
			t.Error("no result became one")
		}
	})
	if got := live(t) - before; got != 0 {
		t.Errorf("%d arrays are left over", got)
	}
}
