package machine

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// DeprioritizeMonitor stops the Go runtime's monitor thread from preempting kernel threads when it wakes.
//
// Every cgo call longer than 10 ms, such as a decode step, makes the monitor poll the Ps every 20 microseconds for a
// while (sysmon in runtime/proc.go, go 1.26). That is about sixty wakeups a token, and each preempts a kernel's thread
// while the others wait for it. It cost 7% of a token's time on two cores. Under SCHED_BATCH a waking thread preempts
// no other (sched(7)). If the monitor cannot be identified, nothing changes.
func DeprioritizeMonitor() {
	tid := findMonitor()
	if tid == 0 {
		return
	}
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL {
		return // another policy was chosen on purpose
	}
	attr.Policy = unix.SCHED_BATCH
	_ = unix.SchedSetAttr(tid, attr, 0) // a failure only costs speed
}

// findMonitor returns the ID of the thread that is in nanosleep in several samples: all other threads of the runtime
// wait on futexes or for I/O. It returns 0 if there is no such thread or the system call cannot be read.
func findMonitor() int {
	const samples, required = 60, 5
	sleeping := strconv.Itoa(unix.SYS_NANOSLEEP) + " "
	seen := map[string]int{}
	for range samples {
		calls, _ := filepath.Glob("/proc/self/task/*/syscall")
		for _, path := range calls {
			b, err := os.ReadFile(path)
			if err != nil || !strings.HasPrefix(string(b), sleeping) {
				continue
			}
			if seen[path]++; seen[path] == required {
				tid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
				return tid
			}
		}
	}
	return 0
}
