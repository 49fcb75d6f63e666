package mlx

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The runtime starts its monitor before any other thread, so it has the lowest number after the first one's.
func TestMonitor(t *testing.T) {
	if _, err := os.ReadFile("/proc/thread-self/syscall"); err != nil {
		t.Skip("this system does not tell what threads wait for:", err)
	}
	tid := monitor()
	if tid == 0 || tid == os.Getpid() {
		t.Fatalf("monitor() = %d", tid)
	}
	for range 3 {
		if again := monitor(); again != tid {
			t.Errorf("monitor() = %d, then %d", tid, again)
		}
	}
	tameMonitor()
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil || attr.Policy != unix.SCHED_BATCH {
		t.Errorf("its policy is %v (%v)", attr, err)
	}
	// The runtime still takes processors back from goroutines that never let go.
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
