//go:build !unix

package runner

import (
	"os"
	"os/exec"
)

func killed(*os.ProcessState) bool { return false }

func tie(*exec.Cmd) {}
