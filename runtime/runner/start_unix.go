//go:build unix && !linux

package runner

import (
	"syscall"

	"github.com/ingotml/ingot/child"
)

// startTied starts the child in a process group of its own, which keeps the terminal's signals from it. When this
// process ends, the end of its input tells the child. If it is stopped then, the system continues it, since nobody is
// left who could: POSIX has that for process groups that become orphaned.
func startTied(c *child.Cmd, _ <-chan struct{}) error {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c.Start()
}
