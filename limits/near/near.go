// Package near finds the names that a mistyped one may mean, for "similar names: ..." in errors.
//
// Contract:
//   - Names are compared in bytes; callers fold case first if it does not matter.
//   - The time is proportional to the product of the lengths, so callers bound both.
//   - The package imports nothing of the project.
package near

import (
	"cmp"
	"slices"
	"strings"
)

// most is the number of names that a message lists.
const most = 3

// Distance returns the edit distance of a and b: the number of insertions, deletions and substitutions of bytes.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// minPrefix is the least length of a prefix that stands for a name.
const minPrefix = 2

// Begins reports whether a name starts with the one asked for, which is long enough to mean it.
func Begins(name, asked string) bool { return len(asked) >= minPrefix && strings.HasPrefix(name, asked) }

// Off returns how far a name is from the one asked for, and whether it is near. A name that starts with the one asked
// for is as near as one with a typing error.
func Off(name, asked string) (int, bool) {
	off := Distance(name, asked)
	if Begins(name, asked) {
		off = min(off, 1)
	}
	return off, off <= max(1, min(len(name), len(asked))/4)
}

// Names returns at most three names that are near the one asked for, nearest first. Their order decides between equal
// ones.
func Names(asked string, names []string) []string {
	type candidate struct {
		name string
		off  int
	}
	var found []candidate
	for _, n := range names {
		if off, ok := Off(n, asked); ok {
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
