//go:build unix

package engine

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// processGone waits a few seconds for a killed process to disappear. A zombie counts as gone: not every container's
// init process reaps orphans.
func processGone(pid int) bool {
	for range 500 {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			return true
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && strings.Contains(string(stat), ") Z ") {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}
