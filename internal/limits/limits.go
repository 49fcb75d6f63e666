// Package limits is the one table of bounds on input that ingot does not trust: requests, templates, schemas, images,
// and the answers of registries.
//
// Contract:
//   - A bound is an exported constant here, in the file of its subject, and a row of the table beside it. The package
//     that reads the input enforces it and reports it as one error that names the bound.
//   - Each row names the test that reaches the bound. The tests of this package hold that every constant has a row and
//     that every named test exists.
//   - docs/security.md prints the table; `go test ./internal/limits -update` rewrites it there.
//   - The package imports nothing of the project.
package limits

import (
	"fmt"
	"slices"
	"strings"
)

// Unit is what a limit counts.
type Unit string

// Units of limits.
const (
	Bytes   Unit = "bytes"
	Count   Unit = "" // the row's What says of what
	Levels  Unit = "levels"
	Steps   Unit = "steps"
	Pixels  Unit = "pixels"
	Seconds Unit = "s"
)

// Limit is one row of the table.
type Limit struct {
	Name  string // the constant's name in this package
	What  string // what is bounded, as the documentation says it
	Value int64
	Unit  Unit
	Test  string // the test that reaches it: folder.TestName
}

// table collects the rows of all files.
var table []Limit

// register adds a file's rows; called from its init.
func register(rows ...Limit) { table = append(table, rows...) }

// Table returns all limits, ordered by name. The caller owns the slice.
func Table() []Limit {
	rows := slices.Clone(table)
	slices.SortFunc(rows, func(a, b Limit) int { return strings.Compare(a.Name, b.Name) })
	return rows
}

// String formats the value with its unit: "1 MiB", "100 levels", "4096".
func (l Limit) String() string {
	switch {
	case l.Unit == Bytes && l.Value >= 1<<20 && l.Value%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", l.Value>>20)
	case l.Unit == Bytes && l.Value >= 1<<10 && l.Value%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", l.Value>>10)
	case l.Unit == Count:
		return fmt.Sprint(l.Value)
	}
	return fmt.Sprintf("%d %s", l.Value, l.Unit)
}
