package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/ingotml/ingot/internal/child"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/engine"
	"github.com/spf13/cobra"
)

func (a *app) engineCmd() *cobra.Command {
	var flavour string
	c := &cobra.Command{
		Use:   "engine",
		Short: "Install the MLX engine or show its status",
		Args:  between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			return unknownCommand(c, args[0])
		},
	}
	c.PersistentFlags().StringVar(&flavour, "flavour", "", "cpu, metal, cuda12 or cuda13 (default by machine)")
	options := func() engine.Options { return a.engineOptions(engine.Flavour(flavour)) }
	c.AddCommand(a.engineStatusCmd(options), a.engineInstallCmd(options), a.engineCheckCmd())
	return c
}

func (a *app) engineStatusCmd(options func() engine.Options) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Show which engine is used, and why",
		Args:  between(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			r := engine.Status(c.Context(), options())
			if asJSON {
				return a.printJSON(r)
			}
			_, err := fmt.Fprintln(a.out, strings.TrimSuffix(r.String(), "\n"))
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) engineInstallCmd(options func() engine.Options) *cobra.Command {
	var asJSON, portable bool
	c := &cobra.Command{
		Use:   "install",
		Short: "Download MLX's official wheel and compile the bridge",
		Long: `Download MLX's official wheel with pip (pip's own index and proxy settings apply), check its
checksum, and compile the bridge with this machine's C++20 compiler. Commands that need the engine
install it on first use.

On a processor without AVX-512, the AVX-512 kernels are left out, which halves the compile time.
--portable compiles all kernels, for a container image or a home folder that machines share.

Several flavours can be installed side by side. Set INGOT_ENGINE_FLAVOUR to choose the one that
commands use.`,
		Args: between(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			opts := options()
			opts.Portable = portable
			e, err := engine.Install(c.Context(), opts)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(installJSON{e.Dir, e.Version, string(e.Flavour)})
			}
			_, err = fmt.Fprintln(a.out, e.Dir)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&portable, "portable", false, "compile kernels for all processors, not only this one")
	return c
}

type installJSON struct {
	Dir     string `json:"dir"`
	Version string `json:"version"`
	Flavour string `json:"flavour"`
}

// engineCheckCmd loads an engine and exits. An installation runs it as a separate process, because loading a broken
// library may crash the process.
func (a *app) engineCheckCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "check",
		Short:  "Load the engine that INGOT_ENGINE names",
		Hidden: true,
		Args:   between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			e, err := engine.Find(engine.Options{})
			if err != nil {
				return err
			}
			return mlx.Check(e)
		},
	}
}

func (a *app) engineOptions(f engine.Flavour) engine.Options {
	return engine.Options{Flavour: f, Log: a.note, Check: checkEngine}
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

// openEngine finds the engine, installs it on first use, and starts it.
func (a *app) openEngine(ctx context.Context, flags cpuFlags) (*mlx.Thread, error) {
	cpu, err := flags.options()
	if err != nil {
		return nil, err
	}
	e, err := a.needEngine(ctx)
	if err != nil {
		return nil, err
	}
	return mlx.Open(e, mlx.Options{CPU: cpu})
}

// needEngine finds the engine and installs it if there is none.
func (a *app) needEngine(ctx context.Context) (*engine.Engine, error) {
	if err := mlx.Available(); err != nil {
		return nil, err // fail before a download
	}
	e, err := engine.Find(engine.Options{})
	if errors.Is(err, engine.ErrNotInstalled) {
		a.note("installing the MLX engine (once)")
		e, err = engine.Install(ctx, a.engineOptions(""))
	}
	if err == nil && e.LacksAVX512 {
		a.note(engine.AVX512Hint)
	}
	return e, err
}
