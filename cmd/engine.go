package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/ingotml/ingot/child"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/engine"
	"github.com/spf13/cobra"
)

func (a *app) engineCmd() *cobra.Command {
	var flavour string
	c := &cobra.Command{
		Use:   "engine",
		Short: "Install the MLX engine, or tell what is installed",
		Args:  between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			return usagef("unknown command %q; `ingot engine --help` lists them", args[0])
		},
	}
	c.PersistentFlags().StringVar(&flavour, "flavour", "", "cpu, metal, cuda12 or cuda13, in place of what the machine suggests")
	options := func() engine.Options { return a.engineOptions(engine.Flavour(flavour)) }
	c.AddCommand(a.engineStatusCmd(options), a.engineInstallCmd(options), a.engineCheckCmd())
	return c
}

func (a *app) engineStatusCmd(options func() engine.Options) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Tell which engine would be used, and why",
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
	var asJSON bool
	c := &cobra.Command{
		Use:   "install",
		Short: "Download MLX's official wheel and compile the bridge to it",
		Long: `Download MLX's official wheel with pip (whose own settings of index and proxy apply),
check its hash, and compile the bridge with this machine's C++20 compiler.
What needs the engine does so by itself on first use.

A flavour given here is installed beside others; INGOT_ENGINE_FLAVOUR makes every
command use it.`,
		Args: between(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			e, err := engine.Install(c.Context(), options())
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
	return c
}

type installJSON struct {
	Dir     string `json:"dir"`
	Version string `json:"version"`
	Flavour string `json:"flavour"`
}

// engineCheckCmd loads an engine and ends: loading a library that is broken may end the process, so an installation
// tries it in a process of its own.
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
		return nil // this build can install for others and load nothing itself
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	environ := append(childEnviron(), engine.EnvEngine+"="+e.Dir)
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

// openEngine finds the engine, installing it on first use, and starts it.
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

// needEngine finds the engine, and installs it where there is none.
func (a *app) needEngine(ctx context.Context) (*engine.Engine, error) {
	if err := mlx.Available(); err != nil {
		return nil, err // before anything is downloaded
	}
	e, err := engine.Find(engine.Options{})
	if errors.Is(err, engine.ErrNotInstalled) {
		a.note("installing the MLX engine, once")
		e, err = engine.Install(ctx, a.engineOptions(""))
	}
	return e, err
}
