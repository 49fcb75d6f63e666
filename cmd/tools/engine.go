package tools

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/engine"
	"github.com/spf13/cobra"
)

func engineCommand(a *cli.App) *cobra.Command {
	var flavour string
	c := &cobra.Command{
		Use:   "engine",
		Short: "Install the MLX engine or show its status",
		Args:  cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			return cli.UnknownCommand(c, args[0])
		},
	}
	c.PersistentFlags().StringVar(&flavour, "flavour", "", "cpu, metal, cuda12 or cuda13 (default by machine)")
	options := func() engine.Options { return engines.InstallOptions(a, engine.Flavour(flavour)) }
	c.AddCommand(engineStatusCommand(a, options), engineInstallCommand(a, options), engineCheckCommand())
	return c
}

func engineStatusCommand(a *cli.App, options func() engine.Options) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Show which engine is used, and why",
		Args:  cli.Between(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			r := engine.Status(c.Context(), options())
			if asJSON {
				return a.PrintJSON(r)
			}
			_, err := fmt.Fprintln(a.Out, strings.TrimSuffix(r.String(), "\n"))
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func engineInstallCommand(a *cli.App, options func() engine.Options) *cobra.Command {
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
		Args: cli.Between(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			opts := options()
			opts.Portable = portable
			e, err := engine.Install(c.Context(), opts)
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(installJSON{e.Dir, e.Version, string(e.Flavour)})
			}
			_, err = fmt.Fprintln(a.Out, e.Dir)
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

// engineCheckCommand loads an engine and exits. An installation runs it as a separate process, because loading a broken
// library may crash the process.
func engineCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "check",
		Short:  "Load the engine that INGOT_ENGINE names",
		Hidden: true,
		Args:   cli.Between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			e, err := engine.Find(engine.Options{})
			if err != nil {
				return err
			}
			return mlx.Check(e)
		},
	}
}
