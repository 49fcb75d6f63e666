package mlx

import (
	"fmt"
	"unsafe"
)

// frame mirrors ig_frame in bridge.h. The frame and its lists are C memory, so calls pass no Go pointers.
type frame struct {
	arrays                  *unsafe.Pointer
	ints                    *int64
	reals                   *float64
	outs                    *desc
	nArrays, nInts, nReals  int32
	capOuts, nOuts          int32
	capArrays, capInts, cap int32 // not read by C
}

// desc mirrors ig_desc in bridge.h.
type desc struct {
	handle unsafe.Pointer
	dtype  int32
	rank   int32
	shape  [maxRank]int32
}

const (
	maxRank    = 8
	startCap   = 64
	maxResults = 1024 // per call: a split into more parts is an error
)

func newFrame() *frame {
	f := (*frame)(cAlloc(unsafe.Sizeof(frame{})))
	f.growArrays(startCap)
	f.growInts(startCap)
	f.reals = (*float64)(cAlloc(startCap * 8))
	f.cap = startCap
	f.outs = (*desc)(cAlloc(maxResults * unsafe.Sizeof(desc{})))
	f.capOuts = maxResults
	return f
}

func (f *frame) growArrays(n int32) {
	p := (*unsafe.Pointer)(cAlloc(uintptr(n) * unsafe.Sizeof(uintptr(0))))
	copy(unsafe.Slice(p, n), unsafe.Slice(f.arrays, f.nArrays))
	cDispose(unsafe.Pointer(f.arrays))
	f.arrays, f.capArrays = p, n
}

func (f *frame) growInts(n int32) {
	p := (*int64)(cAlloc(uintptr(n) * 8))
	copy(unsafe.Slice(p, n), unsafe.Slice(f.ints, f.nInts))
	cDispose(unsafe.Pointer(f.ints))
	f.ints, f.capInts = p, n
}

func (f *frame) array(p unsafe.Pointer) {
	if f.nArrays == f.capArrays {
		f.growArrays(2 * f.capArrays)
	}
	unsafe.Slice(f.arrays, f.capArrays)[f.nArrays] = p
	f.nArrays++
}

func (f *frame) int(v int64) {
	if f.nInts == f.capInts {
		f.growInts(2 * f.capInts)
	}
	unsafe.Slice(f.ints, f.capInts)[f.nInts] = v
	f.nInts++
}

func (f *frame) real(v float64) {
	unsafe.Slice(f.reals, f.cap)[f.nReals] = v // no operation has more than startCap
	f.nReals++
}

func (f *frame) results() []desc { return unsafe.Slice(f.outs, f.nOuts) }

func (f *frame) reset() { f.nArrays, f.nInts, f.nReals, f.nOuts = 0, 0, 0, 0 }

// pointers copies a list of handles to C memory. The result is valid until the next use of the frame.
func (f *frame) pointers(handles []unsafe.Pointer) (*unsafe.Pointer, int) {
	f.reset()
	for _, h := range handles {
		f.array(h)
	}
	return f.arrays, len(handles)
}

// call packs the arguments of one operation, in the order of ops.txt.
type call struct {
	t  *Thread
	op int32
}

// threadOf returns the engine of the first array that is not nil.
func threadOf(op int32, arrays ...*Array) *Thread {
	for _, a := range arrays {
		if a != nil {
			return a.t
		}
	}
	panic(&Error{Message: opNames[op] + ": no array was given"})
}

func (t *Thread) begin(op int32) call {
	t.frame.reset()
	return call{t, op}
}

func (c call) array(a *Array) {
	a.check(opNames[c.op])
	c.t.frame.array(a.handle)
}

func (c call) optional(a *Array) {
	if a == nil {
		c.t.frame.array(nil)
		return
	}
	c.array(a)
}

func (c call) arrays(list []*Array) {
	c.int(len(list))
	for _, a := range list {
		c.array(a)
	}
}

func (c call) int(v int)        { c.t.frame.int(int64(v)) }
func (c call) wide(v uint64)    { c.t.frame.int(int64(v)) }
func (c call) dtype(d DType)    { c.t.frame.int(int64(d)) }
func (c call) mode(m QuantMode) { c.t.frame.int(int64(m)) }
func (c call) real(v float64)   { c.t.frame.real(v) }

func (c call) bool(v bool) {
	if v {
		c.int(1)
	} else {
		c.int(0)
	}
}

func (c call) ints(list []int) {
	c.int(len(list))
	for _, v := range list {
		c.int(v)
	}
}

func (c call) run() []desc {
	c.t.must(cCall(c.op, c.t.frame))
	return c.t.frame.results()
}

func (c call) one() *Array {
	outs := c.run()
	if len(outs) != 1 {
		panic(&Error{Message: fmt.Sprintf("%s gave %d results", opNames[c.op], len(outs))})
	}
	return c.t.adopt(&outs[0])
}

func (c call) many() []*Array { return c.t.adoptAll(c.run()) }

func (t *Thread) adoptAll(outs []desc) []*Array {
	list := make([]*Array, len(outs))
	for i := range outs {
		list[i] = t.adopt(&outs[i])
	}
	return list
}

// adopt wraps a new array of the bridge and adds it to the innermost scope.
func (t *Thread) adopt(d *desc) *Array {
	a := &Array{t: t, handle: d.handle, dtype: DType(d.dtype), shape: make([]int, d.rank)}
	for i := range a.shape {
		a.shape[i] = int(d.shape[i])
	}
	t.scope.arrays = append(t.scope.arrays, a)
	return a
}

// must panics with an error message of the bridge. An empty message means success.
func (t *Thread) must(message string) {
	if message == "" {
		return
	}
	e := &Error{Message: message}
	if cErrorKind() == kindOutOfMemory {
		e.kind = ErrOutOfMemory
		e.Message = "out of memory: " + message
	}
	panic(e)
}

const kindOutOfMemory = 2 // IG_OUT_OF_MEMORY in bridge.h
