package child

import (
	"runtime"
	"syscall"
)

// StartTied starts the child in its own process group, so that it does not receive the terminal's signals. The system
// kills the child when this process ends, even if the child hangs in the engine or is stopped.
//
// PR_SET_PDEATHSIG applies to the thread that starts the child, so that thread lives until ended is closed.
func (c *Cmd) StartTied(ended <-chan struct{}) error {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			<-ended
		}
	}()
	return <-started
}
