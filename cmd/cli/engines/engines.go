// Package engines opens the engine for commands, with their flags, and installs it on first use.
package engines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/internal/child"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/engine"
)

// Open finds the engine, installs it on first use, and starts it.
func Open(ctx context.Context, a *cli.App, flags CPUFlags) (*mlx.Thread, error) {
	cpu, err := flags.Options()
	if err != nil {
		return nil, err
	}
	e, err := Need(ctx, a)
	if err != nil {
		return nil, err
	}
	return mlx.Open(e, mlx.Options{CPU: cpu})
}

// Need finds the engine and installs it if there is none.
func Need(ctx context.Context, a *cli.App) (*engine.Engine, error) {
	if err := mlx.Available(); err != nil {
		return nil, err // fail before a download
	}
	e, err := engine.Find(engine.Options{})
	if errors.Is(err, engine.ErrNotInstalled) {
		a.Note("installing the MLX engine (once)")
		e, err = engine.Install(ctx, InstallOptions(a, ""))
	}
	if err == nil && e.LacksAVX512 {
		a.Note(engine.AVX512Hint)
	}
	return e, err
}

// InstallOptions returns the options of an installation that reports to the user and checks the result.
func InstallOptions(a *cli.App, f engine.Flavour) engine.Options {
	return engine.Options{Flavour: f, Log: a.Note, Check: checkEngine}
}

func checkEngine(ctx context.Context, e *engine.Engine) error {
	if err := mlx.Available(); err != nil {
		return nil // this build can install engines for other builds but cannot load one
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	environ := append(child.Environment(child.Model), engine.EnvEngine+"="+e.Dir)
	out, err := child.Command(ctx, environ, self, "engine", "check").CombinedOutput()
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(strings.TrimSpace(string(out)), "ingot: ")
	if text == "" {
		text = err.Error()
	}
	return fmt.Errorf("%s", text)
}
