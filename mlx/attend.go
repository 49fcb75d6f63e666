package mlx

import (
	"cmp"
	"fmt"
)

// Store is where the keys and values of one sequence lie: [1, kv heads, capacity, size], of one type; where Bits is 8 or 4,
// rows as [PackRows] gives them, [1, kv heads, capacity, PackedBytes(size, Bits)]. V is nil where the values are a part of
// the keys.
type Store struct {
	K, V *Array
	Bits int
}

// PackedBytes is the number of bytes of a row of [PackRows] with so many channels.
func PackedBytes(channels, bits int) int {
	if channels%4 != 0 || bits != 8 && bits != 4 {
		panic(&Error{Message: fmt.Sprintf("rows of %d channels are not packed in %d bits", channels, bits)})
	}
	return channels*bits/8 + (channels+31)/32*4
}

// AttendSegment is a run of rows of one sequence.
type AttendSegment struct {
	Store    Store
	Rows     int // of queries, that follow those of the segment before
	Position int // of the first row; the others follow it
	Stored   int // rows of keys and values to write, the last of them at the positions of the queries; 0 is as many as queries
	Seen     int // without keys and values to write: the sequence's positions
}

// AttendOptions shape what Attend and AttendStored do. Scale is needed.
type AttendOptions struct {
	Scale   float64  // of the scores
	SoftCap float64  // scores are SoftCap*tanh(score/SoftCap); 0 is none
	Window  int      // positions that a row sees, its own included; 0 is all up to its own
	Ring    bool     // position p lies in slot p mod capacity, which is at least Window; else in slot p
	Sinks   *Array   // [heads] scores without a value, or nil
	Values  int      // with stores without V: the values are the first so many channels of the keys
	After   []*Array // what to compute before stores are written: readers of older versions

	// Positions, int32 [T], are those of the rows as the segments say, or nil. With them a CPU looks there when it computes, so that a
	// [Tape] can be played at others.
	Positions *Array
}

func (o AttendOptions) run(q, k, v *Array, segments []AttendSegment) []*Array {
	stores := make([]*Array, 0, 2*len(segments))
	table := make([]int, 0, 4*len(segments))
	bits := 0
	for i, s := range segments {
		if i == 0 {
			bits = s.Store.Bits
		} else if s.Store.Bits != bits {
			panic(&Error{Message: fmt.Sprintf("Attend: storage of %d bits beside %d (0 is plain)", s.Store.Bits, bits)})
		}
		stores = append(stores, s.Store.K)
		if o.Values == 0 {
			stores = append(stores, s.Store.V)
		}
		seen, stored := s.Seen, 0
		if k != nil {
			seen, stored = s.Position+s.Rows, cmp.Or(s.Stored, s.Rows)
		}
		table = append(table, s.Rows, s.Position, seen, stored)
	}
	return attend(q, k, v, stores, table, o.Sinks, o.After, o.Scale, o.SoftCap, o.Window, o.Ring, o.Values, bits, o.Positions)
}

// Attend stores the keys k [S, kv heads, D] and values v [S, kv heads, size] of rows, and lets the queries [T, heads, D] of
// them, or of each segment's last ones, attend to what their sequences have stored, each up to its own position. The result is
// [T, heads, size] and the new versions of the stores.
//
// On a CPU a new version lies in the memory of the old one, so that readers of the old one must come first: see
// AttendOptions.After. No two segments may have one store.
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

// AttendStored is Attend to what is stored already: nothing is written. The second result is computed once the stores
// have been read: what writes to them next takes it in After.
func AttendStored(q *Array, segments []AttendSegment, o AttendOptions) (out, read *Array) {
	outs := o.run(q, nil, nil, segments)
	return outs[0], outs[1]
}
