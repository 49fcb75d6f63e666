package cache

import (
	"slices"

	"github.com/ingotml/ingot/mlx"
)

// A snapshot of a layer that keeps all positions has runs: consecutive slots that nobody writes to, in order. Several
// snapshots and layers may have the same memory, each with a handle of its own.

// maxRuns is the number of runs of a snapshot. A sequence may restore several snapshots and shares maxShared parts.
const maxRuns = 32

// newRuns returns the runs of consecutive parts. A part that nobody writes to stays where it is, if it is most of its
// memory and not short; others are copied, together with their neighbours. written reports who may still write to.
func newRuns(parts []slots, written func(p slots) bool) (runs []slots) {
	var loose []slots
	flush := func() {
		switch {
		case len(loose) == 1 && loose[0].isMost() && !written(loose[0]):
			runs = append(runs, loose[0].kept())
		case len(loose) > 0:
			runs = append(runs, copied(loose...))
		}
		loose = nil
	}
	for _, p := range parts {
		if p.len() < step || written(p) || !p.isMost() {
			loose = append(loose, p)
			continue
		}
		flush()
		runs = append(runs, p.kept())
	}
	flush()
	if i, j := fewest(runs, maxRuns); i < j {
		all := copied(runs[i:j]...)
		free(runs[i:j])
		runs = slices.Replace(runs, i, j, all)
	}
	return runs
}

// unwritten is for parts that nobody writes to.
func unwritten(slots) bool { return false }

// fewest returns the range [i, j) of the runs to join so that at most `most` are left: those with the fewest positions.
// It is empty if they are not more.
func fewest(runs []slots, most int) (i, j int) {
	n := len(runs) - most + 1
	if n <= 1 {
		return 0, 0
	}
	least := -1
	for at := 0; at+n <= len(runs); at++ {
		count := 0
		for _, r := range runs[at : at+n] {
			count += r.len()
		}
		if least < 0 || count < least {
			i, j, least = at, at+n, count
		}
	}
	return i, j
}

// kept returns the same slots with a handle that the caller frees.
func (s slots) kept() slots { return slots{s.handles(), s.begin, s.end} }

// copied returns a copy of slots in memory of their own, which the caller frees. Its evaluation starts before anything
// can overwrite them.
func copied(parts ...slots) (all slots) {
	parts[0].scope(func() {
		p := join(0, parts...)
		mlx.AsyncEval(p.arrays()...)
		mlx.Keep(p.arrays()...)
		all = p.all()
	})
	return all
}

// free frees the handles of slots.
func free(list []slots) {
	for _, s := range list {
		mlx.Free(s.arrays()...)
	}
}
