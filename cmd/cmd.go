// Package cmd implements the command line, with one file per subcommand. A command reads its flags, makes one call into
// the library and prints one value.
//
// Data goes to standard output. Progress, notes and errors go to standard error. An error is one line, with a remedy if
// one is known. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/internal/launch"
	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/index"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitFailed      = fault.ExitFailed
	exitUsage       = fault.ExitUsage
	exitInterrupted = 130
)

// errFailed ends the program with exit code 1 and no message, because the command has already printed the failure.
var errFailed = errors.New("failed")

// app is the state that all subcommands share. out and err sanitize text that is written to a terminal; see
// [terminal.Output].
type app struct {
	in       io.Reader
	out, err *terminal.Output
	quiet    bool
	command  string // the running command with its parents and without arguments, such as "ingot engine status"

	// execute runs another command line with this state.
	execute func(ctx context.Context, args []string) error

	interrupts      interrupts
	credentialFiles map[string][]byte // what --creds and the like have read, by file: a pipe can be read once
}

// Main runs the command line and returns the exit code.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	a := &app{in: in, out: terminal.Data(out), err: terminal.Notes(errs)}
	defer log.SetOutput(log.Writer())
	log.SetOutput(a.err) // libraries log here
	ctx, stop := a.signals()
	defer stop()
	a.execute = func(ctx context.Context, args []string) error {
		root := a.root()
		root.SetArgs(args)
		return root.ExecuteContext(ctx)
	}
	err := a.execute(ctx, args)
	if flushed := a.out.Flush(); err == nil {
		err = flushed
	}
	code := a.exitCode(ctx, err)
	_ = a.err.Flush() // there is nowhere left to report this error
	return code
}

func (a *app) exitCode(ctx context.Context, err error) int {
	var launched *launch.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &launched):
		return launched.Code
	case ctx.Err() != nil:
		a.tell("ingot: interrupted")
		return exitInterrupted
	case errors.Is(err, errFailed):
		return exitFailed
	}
	a.tell("ingot: %v%s", err, remedy(err))
	return fault.Exit(err)
}

// remedy returns what to do about an error. The table of package fault has those that need no value of the error.
func remedy(err error) string {
	var auth *remote.AuthError
	var status *remote.StatusError
	var absent *store.AbsentError
	var unknown *index.NotFoundError
	switch {
	case errors.As(err, &unknown) && unknown.Empty:
		return ", which is empty; `ingot pull NAME` or `ingot create NAME DIR` adds a model"
	case errors.Is(err, remote.ErrSkipped):
		return fault.Remedy(err)
	case errors.As(err, &auth) && auth.Key == "":
		return authRemedy(auth)
	case errors.As(err, &status) && status.Status == http.StatusForbidden:
		return "; `ingot login` as a user who has access"
	case errors.As(err, &absent) && absent.Name.IsLocal():
		return "; pull the model again from its registry"
	case errors.As(err, &absent):
		return fmt.Sprintf("; complete it with `ingot pull %s`", absent.Name)
	}
	return fault.Remedy(err)
}

// authRemedy returns what helps against a refusal. A new login does not, if other credentials are found before it.
func authRemedy(auth *remote.AuthError) string {
	login := fmt.Sprintf("`ingot login %s` stores credentials", auth.Host)
	switch {
	case auth.Given && auth.Place == "" && !auth.Stored:
		return "; check the user name and the password or token"
	case auth.Place != "" && auth.Logout == "":
		return "; correct or remove them there"
	case strings.Contains(auth.Logout, "/"):
		return fmt.Sprintf("; `ingot logout %s` removes them, and %s", auth.Logout, login)
	}
	return "; " + login
}

func (a *app) root() *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:   "ingot",
		Short: "Pack, verify and run model images",
		Long: `ingot turns checkpoints and GGUF files into content-addressed OCI model images,
moves them through registries, verifies them and runs them on the MLX engine.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(c *cobra.Command, _ []string) {
			a.command = c.CommandPath()
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return unknownCommand(c, args[0])
			case showVersion:
				return a.printVersion()
			}
			return c.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	root.Flags().BoolVarP(&showVersion, "version", "v", false, "print the versions of ingot and its engine")
	root.PersistentFlags().BoolVar(&a.quiet, "quiet", false, "print no progress and no notes")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(a.help)
	for _, group := range [][]*cobra.Command{
		a.runCommands(), a.createCommands(), a.registryCommands(), a.serveCommands(), a.verifyCommands(), a.storeCommands(),
		a.toolsCommands(),
	} {
		root.AddCommand(group...)
	}
	addCompletions(root)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
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
					return unknownCommand(root, strings.Join(args, " "))
				}
				return nil
			}
		case "completion":
			c.Args = between(1, 1)
			c.RunE = func(_ *cobra.Command, args []string) error {
				return usagef("unknown shell %q; use bash, zsh, fish or powershell", args[0])
			}
			for _, shell := range c.Commands() {
				shell.Args = between(0, 0)
			}
		}
	}
}

// errUsage is what every usageError is.
var errUsage = fault.Register(errors.New("wrong usage"), fault.Kind{
	Name: "cmd.errUsage", Means: "a flag, an argument or an environment variable is wrong",
	Rank: fault.Usage + 1, Exit: fault.ExitUsage,
})

// usageError is an error in the command line.
type usageError struct{ message string }

func (e usageError) Error() string { return e.message }
func (e usageError) Unwrap() error { return errUsage }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// between checks the number of arguments. A negative most means no limit.
func between(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("too few arguments; usage: %s", c.UseLine())
		case most >= 0 && len(args) > most:
			return usagef("unexpected argument %q; usage: %s", args[most], c.UseLine())
		}
		return nil
	}
}

// tell prints one line on standard error. Line breaks in the text are escaped.
func (a *app) tell(format string, args ...any) {
	fmt.Fprintln(a.err, terminal.Line(fmt.Sprintf(format, args...)))
}

// openStore opens the store and creates it if it does not exist. Processes that wait for its lock see this command's
// name.
func (a *app) openStore() (*store.Store, error) {
	return store.Open("", store.Command(a.command))
}

// note prints a line on standard error unless --quiet is set.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		a.tell(format, args...)
	}
}

// printJSON prints a value as indented JSON. The json package escapes only the control characters below U+0020; Clean
// escapes the others, also in files. The value stays the same.
func (a *app) printJSON(v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(a.out, terminal.Clean(b.String()))
	return err
}
