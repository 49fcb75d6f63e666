package runner

import (
	"runtime"
	"syscall"

	"github.com/ingotml/ingot/child"
)

// startTied starts the child in a process group of its own, which keeps the terminal's signals from it. The system
// kills it when this process ends, whatever the child does then: it may hang in the engine, or be stopped.
//
// The system means the thread that started the child, so that thread lives until ended is closed.
func startTied(c *child.Cmd, ended <-chan struct{}) error {
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
