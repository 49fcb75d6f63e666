package machine

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// findMonitor always finds the same thread, and that thread still works after DeprioritizeMonitor.
func TestMonitor(t *testing.T) {
	if _, err := os.ReadFile("/proc/thread-self/syscall"); err != nil {
		t.Skip("this system does not show what threads wait for:", err)
	}
	// On a loaded machine the monitor may be runnable in all samples, so retry.
	found := func() (tid int) {
		for end := time.Now().Add(time.Minute); tid == 0 && time.Now().Before(end); {
			tid = findMonitor()
		}
		return tid
	}
	tid := found()
	if tid == 0 || tid == os.Getpid() {
		t.Fatalf("findMonitor() = %d", tid)
	}
	for range 3 {
		if again := found(); again != tid {
			t.Errorf("findMonitor() = %d, then %d", tid, again)
		}
	}
	policy := func() uint32 {
		attr, err := unix.SchedGetAttr(tid, 0)
		if err != nil {
			t.Fatal(err)
		}
		return attr.Policy
	}
	for end := time.Now().Add(time.Minute); policy() != unix.SCHED_BATCH; {
		if DeprioritizeMonitor(); time.Now().After(end) {
			t.Fatalf("its policy is %d", policy())
		}
	}
	// The runtime still preempts goroutines that never yield.
	var stop atomic.Bool
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for !stop.Load() {
			}
		}()
	}
	slept := make(chan struct{})
	go func() {
		time.Sleep(5 * time.Millisecond)
		stop.Store(true)
		close(slept)
	}()
	<-slept
}
