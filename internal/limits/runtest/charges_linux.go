package runtest

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// Charges are computations by name. Each returns what it charges for its work.
type Charges map[string]func() (units int64)

// CheckCharges fails for each computation whose time grows by more than perUnit for each unit that it charges more,
// from a small input to a large one. The time is that of the thread's CPU. It allows fixed for a collection of garbage:
// what counts too little by a factor of the size misses that by far.
func CheckCharges(t testing.TB, small, large Charges, perUnit, fixed time.Duration) {
	t.Helper()
	run := func(f func() int64) (units int64, took time.Duration) {
		took = threadTime(t, func() { units = f() })
		return units, took
	}
	if Race {
		perUnit *= 10
	}
	for _, name := range Sample(slices.Sorted(maps.Keys(large))) {
		var units, more int64
		var took, longer time.Duration
		linear := false
		for i := 0; i < 4 && !linear; i++ {
			units, took = run(small[name])
			more, longer = run(large[name]) // may be refused early, and charge less
			linear = longer-took <= fixed+time.Duration(max(0, more-units))*perUnit
		}
		if !linear {
			t.Errorf("%s: from %v to %v, but from %d to %d units", name, took, longer, units, more)
		}
	}
}
