// Package mlxtest gives tests the engine: one per test process, since it cannot be opened twice.
//
// A test without an installed engine is skipped, with the command that installs it; where INGOT_TEST_ENGINE is set
// (make test sets it) it fails instead.
package mlxtest

import (
	"errors"
	"os"
	"sync"
	"testing"

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

// Open is the engine of this test process.
func Open(t testing.TB) *mlx.Thread {
	t.Helper()
	thread, err := open()
	if os.Getenv("INGOT_TEST_ENGINE") == "" && (errors.Is(err, engine.ErrNotInstalled) || errors.Is(err, mlx.ErrNoCgo)) {
		t.Skipf("needs the MLX engine (make engine installs it): %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return thread
}

// Do runs fn on the engine's thread and fails the test on its error.
func Do(t testing.TB, fn func(e *mlx.Thread)) {
	t.Helper()
	if err := Try(t, fn); err != nil {
		t.Fatal(err)
	}
}

// Try runs fn on the engine's thread and gives the error that an operation inside failed with.
func Try(t testing.TB, fn func(e *mlx.Thread)) error {
	t.Helper()
	thread := Open(t)
	return thread.Do(t.Context(), func() error {
		fn(thread)
		return nil
	})
}
