package mlx

import "fmt"

// ChosenOptions configures ChooseKeys and AttendChosen. Scale and Values are required by the latter.
type ChosenOptions struct {
	Scale  float64 // of the scores
	Values int     // the values are the first Values channels of the keys
	Window int     // positions that a row sees in the stores near; 0 without them
	Rate   int     // a store has a key for each Rate positions, so that a row at p sees the first (p+1)/Rate; 0 means 1
	Sinks  *Array  // [heads] scores without a value, or nil

	// Positions is as in [AttendOptions].
	Positions *Array
}

// ChooseKeys returns the indices of the stored keys, int32 [T, budget], that the rows of an indexer attend to, for
// AttendChosen: of those that a row sees, the ones with the highest sums over heads of weight*max(0, query*key), in
// ascending order. queries are [T, heads, D], weights [T, heads]. Each store must have one head; its keys are read. Of
// equal sums the first keys are chosen. A row that sees fewer keys has -1 after them.
//
// The second result is computed once the stores have been read, as in [AttendStored].
func ChooseKeys(queries, weights *Array, segments []AttendSegment, budget int, o ChosenOptions) (chosen, read *Array) {
	stores, table, bits := sparse(segments)
	outs := chooseKeys(queries, weights, stores, table, o.Positions, budget, max(o.Rate, 1), bits)
	return outs[0], outs[1]
}

// AttendChosen lets queries q [T, heads, D] attend to the keys of their sequences that ChooseKeys returned, or, if
// chosen is nil, to all that a row sees. They also attend to a window of other keys, position p of which is in slot p
// mod capacity of near, one store per segment; without a window near is nil. The results are [T, heads, Values], and an
// array as in [AttendStored].
func AttendChosen(q, chosen *Array, segments []AttendSegment, near []Store, o ChosenOptions) (out, read *Array) {
	stores, table, bits := sparse(segments)
	var nears []*Array
	for _, s := range near {
		if s.Bits != bits {
			panic(&Error{Message: fmt.Sprintf("sparse attention: a window of %d and keys of %d bits (0 is plain)",
				s.Bits, bits)})
		}
		nears = append(nears, s.K)
	}
	outs := attendChosen(q, chosen, stores, nears, table, o.Sinks, o.Positions, o.Scale, o.Values, o.Window,
		max(o.Rate, 1), bits)
	return outs[0], outs[1]
}

func sparse(segments []AttendSegment) (stores []*Array, table []int, bits int) {
	for i, s := range segments {
		if i > 0 && s.Store.Bits != bits {
			panic(&Error{Message: fmt.Sprintf("sparse attention: stores of %d and of %d bits in one call (0 is plain)",
				s.Store.Bits, bits)})
		}
		bits = s.Store.Bits
		stores, table = append(stores, s.Store.K), append(table, s.Rows, s.Position)
	}
	return stores, table, bits
}

// Compressor makes entries of projected rows, for CompressRows. All arrays are float32.
type Compressor struct {
	Bias   *Array // [rate, width]: added to the gates, by place in an entry
	Weight *Array // [dim]: of the norm
}

// CompressOptions configures CompressRows.
type CompressOptions struct {
	Rate      int
	Overlap   bool
	Eps       float64  // of the norms
	Freqs     *Array   // float32 [n]: radians per position of the pairs of the last 2n channels, which are neighbours
	Scale     float64  // of the rotated channels
	After     []*Array // as in AttendOptions
	Positions *Array   // as in AttendOptions
}

// CompressSegment is a run of consecutive rows of one sequence.
type CompressSegment struct {
	Ring     *Array   // [1, 1, capacity, W]: position p is in slot p mod capacity
	Entries  []*Array // [1, 1, capacity, dim] for each compressor
	Rows     int
	Position int // of the first row
}

// CompressRows writes projections x [T, W] of rows to the segments' rings, and writes the entries that these complete:
// one for each Rate positions and compressor. x has the values [width] and the gates [width] of each compressor. An
// entry is the mean of its positions' values, weighted in each channel by a softmax over their gates plus Bias, then an
// RMSNorm, then a rope by its first position. With Overlap, width is twice dim: the mean is of the second half of the
// channels of the entry's positions and of the first half of those of the Rate positions before.
//
// It returns new versions of the rings and entries, as [Attend] does of stores. It runs on a CPU only.
func CompressRows(x *Array, segments []CompressSegment, compressors []Compressor, o CompressOptions) []CompressSegment {
	var rings, entries, parts []*Array
	var table []int
	for _, s := range segments {
		rings, entries = append(rings, s.Ring), append(entries, s.Entries...)
		table = append(table, s.Rows, s.Position)
	}
	for _, c := range compressors {
		parts = append(parts, c.Bias, c.Weight)
	}
	outs := compressRows(x, rings, entries, append(parts, o.Freqs), table, o.After, o.Positions, o.Rate, o.Overlap, o.Eps,
		o.Scale)
	made := make([]CompressSegment, len(segments))
	rest := outs[len(segments):]
	for i, s := range segments {
		n := len(s.Entries)
		made[i] = CompressSegment{Ring: outs[i], Entries: rest[:n:n], Rows: s.Rows, Position: s.Position}
		rest = rest[n:]
	}
	return made
}
