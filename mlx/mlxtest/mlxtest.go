// Package mlxtest provides tests with the engine: one per test process, because it cannot be opened twice.
//
// If no engine is installed, the test is skipped with the command that installs it. If runtest.Engine is set, as by
// make test, it fails instead.
package mlxtest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/engine"
)

var open = sync.OnceValues(func() (*mlx.Thread, error) {
	e, err := engine.Find(engine.Options{})
	if err != nil {
		return nil, err
	}
	cpu, err := mlx.CPUFromEnv()
	if err != nil {
		return nil, err
	}
	return mlx.Open(e, mlx.Options{CPU: cpu})
})

// Open returns the engine of this test process.
func Open(t testing.TB) *mlx.Thread {
	t.Helper()
	thread, err := open()
	if errors.Is(err, engine.ErrNotInstalled) || errors.Is(err, mlx.ErrNoCgo) {
		runtest.Engine.Need(t, fmt.Errorf("there is no MLX engine (make engine installs it): %w", err))
	}
	if err != nil {
		t.Fatal(err)
	}
	return thread
}

// Do runs fn on the engine's thread and fails the test on an error.
func Do(t testing.TB, fn func(e *mlx.Thread)) {
	t.Helper()
	if err := Try(t, fn); err != nil {
		t.Fatal(err)
	}
}

// Try runs fn on the engine's thread and returns the error of a failed operation.
func Try(t testing.TB, fn func(e *mlx.Thread)) error {
	t.Helper()
	thread := Open(t)
	return thread.Do(t.Context(), func() error {
		fn(thread)
		return nil
	})
}
