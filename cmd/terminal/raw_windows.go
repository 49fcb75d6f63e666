package terminal

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
	"golang.org/x/term"
)

// raw puts a console into raw mode and enables escape sequences.
func raw(in, out *os.File) (restore func() error, err error) {
	fd, to := int(in.Fd()), windows.Handle(out.Fd())
	state, err := term.MakeRaw(fd)
	if err != nil {
		return nil, err
	}
	var mode uint32
	if err := windows.GetConsoleMode(to, &mode); err == nil {
		err = windows.SetConsoleMode(to, mode|windows.ENABLE_PROCESSED_OUTPUT|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING)
		if err != nil {
			return nil, errors.Join(err, term.Restore(fd, state))
		}
	}
	return func() error { return term.Restore(fd, state) }, nil // leave escape sequences enabled for later output
}

var suspend func() // consoles have no job control
