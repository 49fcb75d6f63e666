package mlx

import "unsafe"

// Tape is an evaluation on a CPU that can be done again with other numbers in its inputs, without its graph: building, walking and freeing
// the graph of a token costs as much as a tenth of computing it.
//
// Whoever plays a tape knows that the graph would be the same but for those numbers. Arrays that the graph read are read again, as they
// are by then; what it wrote in place ([Attend] with positions) is written again; every other array that it made, but for the one that
// was recorded, has lost its elements once the tape is played. A tape holds all this memory until Free.
type Tape struct {
	t      *Thread
	handle unsafe.Pointer
}

// Record computes out as Eval does, and notes how. inputs are those of its inputs whose numbers may change: int32, from FromSlice. Where
// the evaluation cannot be done again, as on a GPU, there is no tape, and out may not be computed yet. Call it inside Do.
func Record(out *Array, inputs ...*Array) *Tape {
	out.check("Record")
	_, handles := handlesOf("Record", inputs)
	p, n := out.t.frame.pointers(handles)
	handle, failed := cTapeRecord(out.handle, p, n)
	out.t.must(prefix("Record", failed))
	if handle == nil {
		return nil
	}
	return &Tape{t: out.t, handle: handle}
}

// Play does it all again with other numbers, those of one input after the other, and gives the array that was recorded anew. Call it
// inside Do.
func (t *Tape) Play(numbers ...[]int32) *Array {
	if t.handle == nil {
		panic(&Error{Message: "Play: the tape was freed"})
	}
	f := t.t.frame
	f.reset()
	for _, list := range numbers {
		for _, n := range list {
			f.int(int64(n))
		}
	}
	t.t.must(prefix("Play", cTapePlay(t.handle, f.ints, int(f.nInts), f.outs)))
	return t.t.adopt(f.outs)
}

// Free lets go of the memory; of no tape it does nothing. Call it inside Do.
func (t *Tape) Free() {
	if t != nil && t.handle != nil {
		cTapeFree(t.handle)
		t.handle = nil
	}
}
