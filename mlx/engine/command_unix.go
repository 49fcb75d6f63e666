//go:build unix

package engine

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a cancelled child take its own children along: a compiler's passes, pip's subprocesses.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
