package arch

import "iter"

// Make says how a tensor is made from its sources.
type Make string

// The ways to make a tensor. All but Add move elements without changing them; [Matched.Pieces] tells which.
const (
	Copy       Make = "copy"       // the only source, as it is
	Reshape    Make = "reshape"    // the only source, its elements in another shape
	Stack      Make = "stack"      // the sources one after another, along the first dimension
	Interleave Make = "interleave" // one expert of each source in turn, along the second dimension
	Gather     Make = "gather"     // some rows of the only source
	Add        Make = "add"        // the only source, [Matched.Add] added to each element
)

// Matched is a tensor of the table with the tensors that it is made from.
type Matched struct {
	Spec    Spec // with the shape that the tensor has
	Sources []string
	Make    Make
	// Add is added to every element, in float32, when Make is Add: the result is to be kept in F32, where it is exact.
	Add float64
	// Repeat and Runs say which elements of the sources follow each other, see Pieces.
	Repeat int64
	Runs   []Run
}

// Run is some stretches of a source: Times stretches of Count elements, the first at Begin, Step elements from one to the
// next.
type Run struct {
	Source             int // index into Sources
	Begin, Count, Step int64
	Times              int64
}

// Piece is a stretch of elements of a source that follow each other in the result.
type Piece struct {
	Source       int // index into Sources
	Begin, Count int64
}

// Pieces gives the stretches of the sources that, one after another, are the tensor's elements: the runs in order, all of
// that Repeat times, where each time goes on in each run where the time before ended.
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

// whole is all of each of n sources of count elements.
func whole(n int, count int64) []Run {
	runs := make([]Run, n)
	for i := range runs {
		runs[i] = Run{Source: i, Count: count, Step: count, Times: 1}
	}
	return runs
}
