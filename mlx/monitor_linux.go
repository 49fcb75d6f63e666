package mlx

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// tameMonitor lets the Go runtime's monitor thread run where a processor is free or at its next turn, not at once.
//
// Each call into C of more than ten milliseconds, which a token is, makes the monitor look after the processors every
// 20 microseconds for a while (sysmon in runtime/proc.go, go 1.26): sixty times a token, each of them throwing a kernel's
// thread off its processor while the others wait for it. That took 7 % of a token's time on two cores. Under SCHED_BATCH a
// thread that wakes interrupts nobody (sched(7)). Where the monitor cannot be told from other threads, nothing is done.
func tameMonitor() {
	tid := monitor()
	if tid == 0 {
		return
	}
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL {
		return // whoever chose another policy has reasons
	}
	attr.Policy = unix.SCHED_BATCH
	_ = unix.SchedSetAttr(tid, attr, 0) // refused, it is as slow as before
}

// monitor finds the thread that sleeps by the clock whenever it is looked at: all others of the runtime wait on futexes or
// for files. It is 0 where no thread was seen so, or the system does not tell.
func monitor() int {
	const looks, enough = 60, 5
	sleeping := strconv.Itoa(unix.SYS_NANOSLEEP) + " "
	seen := map[string]int{}
	for range looks {
		calls, _ := filepath.Glob("/proc/self/task/*/syscall")
		for _, path := range calls {
			b, err := os.ReadFile(path)
			if err != nil || !strings.HasPrefix(string(b), sleeping) {
				continue
			}
			if seen[path]++; seen[path] == enough {
				tid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
				return tid
			}
		}
	}
	return 0
}
