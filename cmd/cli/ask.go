package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ingotml/ingot/cmd/terminal"
	"golang.org/x/term"
)

// Confirm asks a yes-no question. The default is no.
func (a *App) Confirm(ctx context.Context, question string) (bool, error) {
	fmt.Fprintf(a.Err, "%s [y/N] ", terminal.Line(question))
	reply, err := bufio.NewReader(a.Stdin(ctx)).ReadString('\n')
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	reply = strings.ToLower(strings.TrimSpace(reply))
	if reply == "" && err != nil {
		fmt.Fprintln(a.Err) // end of input without Enter: end the line of the question
	}
	return reply == "y" || reply == "yes", nil
}

// OnTerminal reports whether the program can ask a question: standard input and standard error are terminals.
func (a *App) OnTerminal() bool {
	return IsTerminal(a.In) && a.Err.IsTerminal()
}

// OnTerminals reports whether standard input and standard output are terminals.
func (a *App) OnTerminals() bool { return IsTerminal(a.In) && a.Out.IsTerminal() }

// IsTerminal reports whether a reader is a terminal.
func IsTerminal(f io.Reader) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// AskSecret reads a secret from a terminal without echo.
func (a *App) AskSecret(ctx context.Context, f *os.File, what string) ([]byte, error) {
	state, err := term.GetState(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(a.Err, "%s: ", terminal.Line(what))
	b, err := Await(ctx, func() ([]byte, error) { return term.ReadPassword(int(f.Fd())) })
	fmt.Fprintln(a.Err)
	if err != nil {
		_ = term.Restore(int(f.Fd()), state) // an interrupted read leaves echo off
	}
	return b, err
}
