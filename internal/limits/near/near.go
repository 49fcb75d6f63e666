// Package near finds the names that a mistyped one may mean, for "similar names: ..." in errors.
//
// Contract:
//   - Names are compared in bytes; callers fold case first if it does not matter.
//   - The time is proportional to the square of the shorter length, so callers bound one of them.
//   - The package imports nothing of the project.
package near

import (
	"cmp"
	"slices"
	"strings"
)

// most is the number of names that a message lists.
const most = 3

// Distance returns the edit distance of a and b: the number of insertions, deletions, substitutions and swaps of
// neighboring bytes, where no part is edited twice.
func Distance(a, b string) int {
	var before, last []int // the two rows above
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			if a[i] == b[j] {
				row[j+1] = last[j]
				continue
			}
			row[j+1] = 1 + min(last[j], row[j], last[j+1])
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// minPrefix is the least length of a prefix that stands for a name.
const minPrefix = 2

// Begins reports whether a name starts with the one asked for, which is long enough to mean it.
func Begins(name, want string) bool {
	return len(want) >= minPrefix && strings.HasPrefix(name, want)
}

// Off returns how far a name is from the one asked for, and whether it is near. A name that starts with the one asked
// for is as near as one with a typing error. Names whose lengths differ too much are not compared: the result is then a
// lower bound.
func Off(name, want string) (int, bool) {
	near := max(1, min(len(name), len(want))/4)
	if Begins(name, want) {
		return min(len(name)-len(want), 1), true
	}
	if off := max(len(name), len(want)) - min(len(name), len(want)); off > near {
		return off, false
	}
	off := Distance(name, want)
	return off, off <= near
}

// Names returns at most three names that are near the one asked for, nearest first. Their order decides between equal
// ones.
func Names(want string, names []string) []string {
	type candidate struct {
		name string
		off  int
	}
	var found []candidate
	for _, n := range names {
		if off, ok := Off(n, want); ok {
			found = append(found, candidate{n, off})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.off, b.off) })
	var list []string
	for _, c := range found[:min(len(found), most)] {
		list = append(list, c.name)
	}
	return list
}
