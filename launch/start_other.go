//go:build !unix

package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
)

// Run runs the program on this one's terminal. Ctrl-C is the program's. The error of one that did not end well is an *ExitError.
func (s Start) Run() error {
	signal.Ignore(os.Interrupt) // the console sends it to both
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
