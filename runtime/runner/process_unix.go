//go:build unix

package runner

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// endedBy reports whether a signal ended a process.
func endedBy(p *os.ProcessState, signal string) bool {
	s, ok := p.Sys().(syscall.WaitStatus)
	return ok && s.Signaled() && unix.SignalName(s.Signal()) == signal
}

// die kills this process. It runs no destructors of libraries, which may wait for the thread that hangs.
func die() { _ = unix.Kill(os.Getpid(), unix.SIGKILL) }

// Stdout reserves standard output for messages: from now on, whatever else the process writes there, such as output of
// libraries, goes to standard error.
func Stdout() (*os.File, error) {
	fd, err := unix.Dup(1)
	if err == nil {
		unix.CloseOnExec(fd)
		err = unix.Dup2(2, 1)
	}
	if err != nil {
		return nil, fmt.Errorf("take standard output: %w", err)
	}
	return os.NewFile(uintptr(fd), "messages"), nil
}
