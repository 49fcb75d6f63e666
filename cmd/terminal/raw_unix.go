//go:build !windows

package terminal

import (
	"os"
	"syscall"

	"golang.org/x/term"
)

// raw puts a terminal into raw mode.
func raw(in, _ *os.File) (restore func() error, err error) {
	fd := int(in.Fd())
	state, err := term.MakeRaw(fd)
	if err != nil {
		return nil, err
	}
	return func() error { return term.Restore(fd, state) }, nil
}

// suspend suspends the foreground process group, as the terminal does for Ctrl-Z.
func suspend() { _ = syscall.Kill(0, syscall.SIGTSTP) }
