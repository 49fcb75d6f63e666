//go:build !windows

package terminal

import (
	"os"
	"syscall"

	"golang.org/x/term"
)

// raw has a terminal give keys as they are pressed.
func raw(in, _ *os.File) (restore func() error, err error) {
	fd := int(in.Fd())
	state, err := term.MakeRaw(fd)
	if err != nil {
		return nil, err
	}
	return func() error { return term.Restore(fd, state) }, nil
}

// suspend stops the program and what runs beside it in the foreground, as the terminal itself does for Ctrl-Z.
func suspend() { _ = syscall.Kill(0, syscall.SIGTSTP) }
