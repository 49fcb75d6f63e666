//go:build !cgo

package mlx_test

import (
	"errors"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/engine"
)

func TestNoCgo(t *testing.T) {
	if _, err := mlx.Open(&engine.Engine{}, mlx.Options{}); !errors.Is(err, mlx.ErrNoCgo) {
		t.Errorf("Open: %v", err)
	}
	if err := mlx.Check(&engine.Engine{}); !errors.Is(err, mlx.ErrNoCgo) {
		t.Errorf("Check: %v", err)
	}
	if err := mlx.Available(); !errors.Is(err, mlx.ErrNoCgo) {
		t.Errorf("Available: %v", err)
	}
}
