//go:build unix && !linux

package child

import (
	"syscall"
)

// StartTied starts the child in its own process group, so that it does not receive the terminal's signals. When this
// process ends, the child notices by the end of its input. POSIX continues a stopped child then, because its process
// group becomes orphaned.
func (c *Cmd) StartTied(_ <-chan struct{}) error {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c.Start()
}
