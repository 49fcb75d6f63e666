package mlx

import "unsafe"

// Tape is a recorded evaluation on a CPU that can be replayed with other values in its inputs. Replaying skips
// building, traversing and freeing the graph, which costs up to a tenth of a decode step.
//
// The caller guarantees that the graph would be the same except for those values. A replay reads the arrays that the
// graph read, with their current contents, and repeats in-place writes ([Attend] with Positions). After the first
// replay, every other array that the graph produced has lost its elements, except the recorded output. A tape holds all
// of this memory until Free.
type Tape struct {
	t      *Thread
	handle unsafe.Pointer
}

// Record computes out as Eval does and records the evaluation. inputs are the arrays whose values may change; they must
// be int32 and made by FromSlice. If the evaluation cannot be replayed, for example on a GPU, Record returns nil, and
// out may not be computed yet. Call it inside Do.
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

// Play replays the evaluation with new input values, given in the order of Record's inputs, and returns the output as a
// new array. Call it inside Do.
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

// Free releases the memory. It does nothing on a nil tape. Call it inside Do.
func (t *Tape) Free() {
	if t != nil && t.handle != nil {
		cTapeFree(t.handle)
		t.handle = nil
	}
}
