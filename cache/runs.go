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
// memory and not short; others are copied, together with their neighbours. written are keys that are still written to,
// with their values; nil: none.
func newRuns(parts []slots, written *mlx.Array) (runs []slots) {
	var loose []slots
	flush := func() {
		switch {
		case len(loose) == 1 && loose[0].isMost() && loose[0].k != written:
			runs = append(runs, loose[0].kept())
		case len(loose) > 0:
			runs = append(runs, copied(loose...))
		}
		loose = nil
	}
	for _, p := range parts {
		if p.len() < step || p.k == written || !p.isMost() {
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

// copied returns a copy of slots in memory of their own, which the caller frees.
func copied(parts ...slots) slots {
	return pairOf(owned(parts[0].k.Thread(), func() []*mlx.Array { return join(0, parts...).arrays() })).all()
}

// free frees the handles of slots.
func free(list []slots) {
	for _, s := range list {
		mlx.Free(s.arrays()...)
	}
}
