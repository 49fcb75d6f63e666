package mlx

import (
	"cmp"
	"fmt"
)

// Store holds the keys and values of one sequence, as [1, kv heads, capacity, size], all of one type. If Bits is 8 or
// 4, rows are packed as by [PackRows]: [1, kv heads, capacity, PackedBytes(size, Bits)]. V is nil if the values are a
// prefix of the keys' channels.
type Store struct {
	K, V *Array
	Bits int
}

// PackedBytes returns the size of one [PackRows] row of the given number of channels.
func PackedBytes(channels, bits int) int {
	if channels%4 != 0 || bits != 8 && bits != 4 {
		panic(&Error{Message: fmt.Sprintf("rows of %d channels are not packed in %d bits", channels, bits)})
	}
	return channels*bits/8 + (channels+31)/32*4
}

// StorePart is the slots [Begin, End) of a store.
type StorePart struct {
	Store
	Begin, End int
}

// AttendSegment is a run of consecutive rows of one sequence.
type AttendSegment struct {
	Store    Store
	Shared   []StorePart // the sequence's first positions, which are only read; Store has the positions after them
	Rows     int         // number of queries, taken after those of the previous segment
	Position int         // of the first row; the others are consecutive
	Stored   int         // number of keys and values to write; the last ones are at the queries' positions. 0 means Rows
	Seen     int         // for AttendStored: the number of positions in the store
}

// AttendOptions configures Attend and AttendStored. Scale is required.
type AttendOptions struct {
	Scale   float64  // of the scores
	SoftCap float64  // scores become SoftCap*tanh(score/SoftCap); 0 disables it
	Window  int      // positions that a row sees, including its own; 0 means all up to its own
	Chunked bool     // a row sees the positions up to its own from the last multiple of Window on
	Ring    bool     // position p is in slot p mod capacity, and capacity is at least Window; otherwise in order
	Sinks   *Array   // [heads] scores without a value, or nil
	Values  int      // for stores without V: the values are the first Values channels of the keys
	After   []*Array // computed before the stores are written: readers of older versions

	// Positions, int32 [T], repeats the rows' positions as the segments give them, or is nil. If set, CPU kernels read the
	// positions from it when they run, so that a [Tape] can be replayed at other positions.
	Positions *Array
}

func (o AttendOptions) run(q, k, v *Array, segments []AttendSegment) []*Array {
	stores := make([]*Array, 0, 2*len(segments))
	table := make([]int, 0, 4*len(segments))
	var shared []*Array
	var parts []int
	bits := 0
	of := func(s Store, to []*Array) []*Array {
		if s.Bits != bits {
			panic(&Error{Message: fmt.Sprintf("Attend: stores of %d and of %d bits in one call (0 is plain)", s.Bits, bits)})
		}
		if to = append(to, s.K); o.Values == 0 {
			to = append(to, s.V)
		}
		return to
	}
	for i, s := range segments {
		if i == 0 {
			bits = s.Store.Bits
		}
		stores = of(s.Store, stores)
		for _, p := range s.Shared {
			shared, parts = of(p.Store, shared), append(parts, i, p.Begin, p.End)
		}
		seen, stored := s.Seen, 0
		if k != nil {
			seen, stored = s.Position+s.Rows, cmp.Or(s.Stored, s.Rows)
		}
		table = append(table, s.Rows, s.Position, seen, stored)
	}
	return attend(
		q, k, v, stores, table, o.Sinks, o.After, o.Scale, o.SoftCap, o.Window, o.Chunked, o.Ring, o.Values, bits,
		o.Positions, shared, parts...,
	)
}

// Attend writes the keys k [S, kv heads, D] and values v [S, kv heads, size] to the segments' stores and lets the
// queries q [T, heads, D] attend to the stored positions, each up to its own. A segment may store more rows than it
// queries; its queries are then its last rows. The results are the output [T, heads, size] and the new versions of the
// stores.
//
// On a CPU a new version reuses the memory of the old one, so readers of the old one must be computed first: see
// AttendOptions.After. Two segments must not share a store.
func Attend(q, k, v *Array, segments []AttendSegment, o AttendOptions) (*Array, []Store) {
	if k == nil {
		panic(&Error{Message: "Attend: no keys were given"})
	}
	outs := o.run(q, k, v, segments)
	stores, rest := make([]Store, len(segments)), outs[1:]
	for i := range stores {
		stores[i].Bits = segments[i].Store.Bits
		stores[i].K, rest = rest[0], rest[1:]
		if o.Values == 0 {
			stores[i].V, rest = rest[0], rest[1:]
		}
	}
	return outs[0], stores
}

// AttendStored is Attend over the positions that are already stored; it writes nothing. The second result is computed
// once the stores have been read: the next writer must list it in After.
func AttendStored(q *Array, segments []AttendSegment, o AttendOptions) (out, read *Array) {
	outs := o.run(q, nil, nil, segments)
	return outs[0], outs[1]
}
