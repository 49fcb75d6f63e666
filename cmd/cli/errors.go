package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ingotml/ingot/internal/launch"
	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/index"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/spf13/cobra"
)

// ExitCode prints the error of a command and returns the exit code.
func (a *App) ExitCode(ctx context.Context, err error) int {
	var launched *launch.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &launched):
		return launched.Code
	case ctx.Err() != nil:
		a.Tell("ingot: interrupted")
		return exitInterrupted
	case errors.Is(err, ErrFailed):
		return ExitFailed
	}
	a.Tell("ingot: %v%s", err, Remedy(err))
	return fault.Exit(err)
}

// Remedy returns what to do about an error. The table of package fault has those that need no value of the error.
func Remedy(err error) string {
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

// Exit codes.
const (
	ExitFailed      = fault.ExitFailed
	ExitUsage       = fault.ExitUsage
	exitInterrupted = 130
)

// ErrFailed ends the program with exit code 1 and no message, because the command has already printed the failure.
var ErrFailed = errors.New("failed")

// errUsage is what every usageError is.
var errUsage = fault.Register(errors.New("wrong usage"), fault.Kind{
	Name: "cmd/cli.errUsage", Means: "a flag, an argument or an environment variable is wrong",
	Rank: fault.Usage + 1, Exit: fault.ExitUsage,
})

// usageError is an error in the command line.
type usageError struct{ message string }

func (e usageError) Error() string { return e.message }

func (e usageError) Unwrap() error { return errUsage }

// Usagef returns an error about the command line, with exit code 2.
func Usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// Between checks the number of arguments. A negative most means no limit.
func Between(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return Usagef("too few arguments; usage: %s", c.UseLine())
		case most >= 0 && len(args) > most:
			return Usagef("unexpected argument %q; usage: %s", args[most], c.UseLine())
		}
		return nil
	}
}
