//go:build !unix

package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
)

// Run runs the program on this process's terminal and leaves Ctrl-C to it. If it exits with a non-zero status, the
// error is an *ExitError.
func (s Start) Run() error {
	signal.Ignore(os.Interrupt) // the console sends it to both processes
	c := exec.Command(s.Path, s.Args...)
	c.Env, c.Stdin, c.Stdout, c.Stderr = s.Env, os.Stdin, os.Stdout, os.Stderr
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return &ExitError{exit.ExitCode()}
	case err != nil:
		return fmt.Errorf("start %s: %w", s.Path, err)
	}
	return nil
}
