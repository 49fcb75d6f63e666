//go:build unix

package engine

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the child in a process group of its own, so that cancelling it also kills its children: the compiler's
// passes, pip's subprocesses.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
