package runtest

import (
	"maps"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
)

// Charges are computations by name. Each returns what it charges for its work.
type Charges map[string]func() (units int64)

// CheckGrowth fails for each computation whose time grows by more than perUnit for each unit that it charges more, from
// a small input to a large one. It counts the CPU time of its thread, since the machine may be busy, and allows fixed
// for the collection of garbage: what counts too little by a factor of the size misses that by far.
func CheckGrowth(t testing.TB, small, large Charges, perUnit, fixed time.Duration) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cpu := func() time.Duration {
		const thisThread = 1 // RUSAGE_THREAD of getrusage(2)
		var u syscall.Rusage
		if err := syscall.Getrusage(thisThread, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	run := func(f func() int64) (units int64, took time.Duration) {
		begun := cpu()
		units = f()
		return units, cpu() - begun
	}
	if Race {
		perUnit *= 10
	}
	for _, name := range Sample(slices.Sorted(maps.Keys(large))) {
		var units, more int64
		var took, longer time.Duration
		for range 4 {
			units, took = run(small[name])
			more, longer = run(large[name])
			if longer-took <= fixed+time.Duration(more-units)*perUnit {
				break
			}
		}
		if longer-took > fixed+time.Duration(more-units)*perUnit {
			t.Errorf("%s: from %v to %v, but from %d to %d units", name, took, longer, units, more)
		}
	}
}
