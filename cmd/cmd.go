// Package cmd implements the command line. Each group of commands is a package of its own, with one file per command. A
// command reads its flags, makes one call into the library and prints one value.
//
// Data goes to standard output. Progress, notes and errors go to standard error. An error is one line, with a remedy if
// one is known. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
package cmd

import (
	"context"
	"io"
	"log"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/create"
	"github.com/ingotml/ingot/cmd/registry"
	"github.com/ingotml/ingot/cmd/run"
	"github.com/ingotml/ingot/cmd/serve"
	"github.com/ingotml/ingot/cmd/store"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/cmd/tools"
	"github.com/ingotml/ingot/cmd/verify"
	"github.com/spf13/cobra"
)

// groups are the commands, by group.
var groups = []func(*cli.App) []*cobra.Command{
	run.Commands, create.Commands, registry.Commands, serve.Commands, verify.Commands, store.Commands, tools.Commands,
}

// Main runs the command line and returns the exit code.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	a := &cli.App{In: in, Out: terminal.Data(out), Err: terminal.Notes(errs)}
	defer log.SetOutput(log.Writer())
	log.SetOutput(a.Err) // libraries log here
	ctx, stop := a.Signals()
	defer stop()
	a.Execute = func(ctx context.Context, args []string) error {
		root := root(a)
		root.SetArgs(args)
		return root.ExecuteContext(ctx)
	}
	err := a.Execute(ctx, args)
	if flushed := a.Out.Flush(); err == nil {
		err = flushed
	}
	code := a.ExitCode(ctx, err)
	_ = a.Err.Flush() // there is nowhere left to report this error
	return code
}

func root(a *cli.App) *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:   "ingot",
		Short: "Pack, verify and run model images",
		Long: `ingot turns checkpoints and GGUF files into content-addressed OCI model images,
moves them through registries, verifies them and runs them on the MLX engine.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(c *cobra.Command, _ []string) {
			a.Command = c.CommandPath()
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return cli.UnknownCommand(c, args[0])
			case showVersion:
				return a.PrintVersion()
			}
			return c.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	root.Flags().BoolVarP(&showVersion, "version", "v", false, "print the versions of ingot and its engine")
	root.PersistentFlags().BoolVar(&a.Quiet, "quiet", false, "print no progress and no notes")
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetHelpFunc(a.Help)
	for _, group := range groups {
		root.AddCommand(group(a)...)
	}
	cli.AddCompletions(root)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	checkOwnCommands(root)
	return root
}

// checkOwnCommands reports wrong arguments of cobra's own commands, help and completion, as wrong usage.
func checkOwnCommands(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				if found, rest, err := root.Find(args); err != nil || found == root && len(rest) > 0 {
					return cli.UnknownCommand(root, strings.Join(args, " "))
				}
				return nil
			}
		case "completion":
			c.Args = cli.Between(1, 1)
			c.RunE = func(_ *cobra.Command, args []string) error {
				return cli.Usagef("unknown shell %q; use bash, zsh, fish or powershell", args[0])
			}
			for _, shell := range c.Commands() {
				shell.Args = cli.Between(0, 0)
			}
		}
	}
}
