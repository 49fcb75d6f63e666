package fit

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// Resident returns the memory of this process in bytes: its own, and pages of files that it has read, such as
// code; see proc_pid_status(5). Both are 0 if they are unknown.
func Resident() (own, files int64) {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "RssAnon":
			own = kilobytes << 10
		case "RssFile":
			files = kilobytes << 10
		}
	}
	return own, files
}
