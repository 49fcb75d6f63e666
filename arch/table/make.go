package table

import (
	"iter"
)

// Make is a way to make a tensor from its sources.
type Make string

// All but Add move elements unchanged; [Matched.Pieces] says which.
const (
	Copy       Make = "copy"       // the only source, unchanged
	Reshape    Make = "reshape"    // the only source, in another shape
	Stack      Make = "stack"      // the sources concatenated along the first dimension
	Interleave Make = "interleave" // the sources concatenated along the second dimension, expert by expert
	Gather     Make = "gather"     // selected rows of the only source
	Add        Make = "add"        // the only source, plus [Matched.Add] in each element
)

// Matched is a tensor of the table and the sources it is made from.
type Matched struct {
	Spec    Spec // with the tensor's actual shape
	Sources []string
	Make    Make
	// Add is added to every element in float32 if Make is Add. Store the result as F32, where it is exact.
	Add float64
	// Repeat and Runs define the order of the sources' elements; see Pieces.
	Repeat int64
	Runs   []Run
	// Transposed: the last two dimensions of the sources are matrices that are transposed before their elements are moved.
	Transposed bool
}

// Run is a strided sequence of ranges of a source: Times ranges of Count elements, the first at Begin, Step elements
// apart.
type Run struct {
	Source             int // index into Sources
	Begin, Count, Step int64
	Times              int64
}

// Piece is a contiguous range of a source's elements.
type Piece struct {
	Source       int // index into Sources
	Begin, Count int64
}

// Pieces yields the source ranges whose concatenation is the tensor. It walks all runs in order, Repeat times; each
// repetition continues every run where the previous one ended.
func (m Matched) Pieces() iter.Seq[Piece] {
	return func(yield func(Piece) bool) {
		for i := range m.Repeat {
			for _, r := range m.Runs {
				for j := range r.Times {
					if !yield(Piece{r.Source, r.Begin + (i*r.Times+j)*r.Step, r.Count}) {
						return
					}
				}
			}
		}
	}
}

// whole returns runs that cover n sources of count elements each.
func whole(n int, count int64) []Run {
	runs := make([]Run, n)
	for i := range runs {
		runs[i] = Run{Source: i, Count: count, Step: count, Times: 1}
	}
	return runs
}

func stackRuns(f Form) []Run {
	var runs []Run
	for range max(f.Count, 1) {
		for _, shape := range f.Shapes {
			n := Elements(shape)
			runs = append(runs, Run{Source: len(runs), Count: n, Step: n, Times: 1})
		}
	}
	return runs
}

func interleaveRuns(f Form) []Run {
	var runs []Run
	for i, shape := range f.Shapes {
		slab := Elements(shape[1:])
		runs = append(runs, Run{Source: i, Count: slab, Step: slab, Times: 1})
	}
	return runs
}
