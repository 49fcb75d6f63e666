package runtest

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Linear fails if work takes clearly more than four times as long for four times its size. prepare returns the work of
// a size. The time is that of the thread's CPU, since the machine may be busy, so the work must run in its goroutine.
//
// The size must be such that quadratic work is felt: it takes 16 times as long, and up to 8 times and a collection of
// garbage are allowed.
func Linear(t testing.TB, size int, prepare func(size int) (work func())) {
	t.Helper()
	const times, garbage = 8, 15 * time.Millisecond
	var one, four time.Duration
	for range 4 { // what else the thread does, such as a collection, is rarely in the way so often
		one, four = threadTime(t, prepare(size)), threadTime(t, prepare(4*size))
		if four <= times*one+garbage {
			return
		}
	}
	t.Errorf("%v for size %d, %v for four times as much", one, size, four)
}

// threadTime returns the time of the CPU that work takes.
func threadTime(t testing.TB, work func()) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now := func() time.Duration {
		const thisThread = 1 // RUSAGE_THREAD of getrusage(2)
		var u syscall.Rusage
		if err := syscall.Getrusage(thisThread, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	begun := now()
	work()
	return now() - begun
}
