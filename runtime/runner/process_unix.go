//go:build unix

package runner

import (
	"os"
	"os/exec"
	"syscall"
)

// killed reports whether a process ended by SIGKILL.
func killed(p *os.ProcessState) bool {
	s, ok := p.Sys().(syscall.WaitStatus)
	return ok && s.Signaled() && s.Signal() == syscall.SIGKILL
}

// tie keeps the terminal's signals from the child: the parent decides when it ends. Of a parent that was killed the end of its
// input tells it.
func tie(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
