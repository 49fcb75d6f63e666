package mlx_test

import (
	"bytes"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// Every operation gives the same result on a second stream: none uses the default stream by accident.
func TestOpsOnAnotherStream(t *testing.T) {
	thread := mlxtest.Open(t)
	g := openGoldens(t)
	var second mlx.Stream
	mlxtest.Do(t, func(e *mlx.Thread) { second = e.NewStream(thread.Info().GPU) })
	seen := map[string]bool{}
	for _, c := range g.cases {
		if seen[c.Op] {
			continue
		}
		seen[c.Op] = true
		mlxtest.Do(t, func(e *mlx.Thread) {
			want := call(c.Op, g.arguments(e, c))
			mlx.AsyncEval(want...)
			e.WithStream(second, func() {
				for i, a := range call(c.Op, g.arguments(e, c)) {
					if !bytes.Equal(a.ToBytes(), want[i].ToBytes()) {
						t.Errorf("%v: result %d differs on a second stream", c, i)
					}
				}
			})
		})
	}
}

// Work on one stream may use arrays that another stream is still computing.
func TestStreamsWaitForEachOther(t *testing.T) {
	thread := mlxtest.Open(t)
	mlxtest.Do(t, func(e *mlx.Thread) {
		second := e.NewStream(thread.Info().GPU)
		x := mlx.Ones(e, mlx.Float32, 64, 64)
		for range 8 {
			x = mlx.MultiplyScalar(mlx.MatMul(x, x), 1.0/64)
			mlx.AsyncEval(x)
			e.WithStream(second, func() { x = mlx.AddScalar(x, 0) })
		}
		e.WithStream(second, func() {
			if got := mlx.Sum(x, false).Float32s()[0]; got != 64*64 {
				t.Errorf("got %v", got)
			}
			e.Synchronize()
		})
	})
}

func TestStreamsOfNoDevice(t *testing.T) {
	if mlxtest.Open(t).Info().GPU {
		t.Skip("this machine has a GPU")
	}
	wantError(t, mlxtest.Try(t, func(e *mlx.Thread) { e.NewStream(true) }), "NewStream: ")
	stillWorks(t)
}

// WithStream restores the previous stream if its function fails.
func TestWithStreamRestores(t *testing.T) {
	err := mlxtest.Try(t, func(e *mlx.Thread) {
		second := e.NewStream(e.Info().GPU)
		e.WithStream(second, func() { mlx.Reshape(mlx.Ones(e, mlx.Float32, 2), 3) })
	})
	wantError(t, err, "Reshape(float32[2])")
	stillWorks(t)
}
