package mlx

import "unsafe"

// scope owns the arrays made while it is the innermost one.
type scope struct {
	outer  *scope
	arrays []*Array
}

// Scope runs fn and frees the arrays made in it, except kept ones, also when fn panics. Call it inside Do.
func (t *Thread) Scope(fn func()) {
	s := &scope{outer: t.scope}
	t.scope = s
	defer func() {
		t.scope = s.outer
		t.free(s.arrays)
	}()
	fn()
}

// Keep takes arrays out of their scopes: they live until Free. Nil arrays are skipped. It returns the first.
func Keep(arrays ...*Array) *Array {
	for _, a := range arrays {
		if a != nil {
			a.check("Keep")
			a.kept = true
		}
	}
	if len(arrays) == 0 {
		return nil
	}
	return arrays[0]
}

// Free ends the life of arrays at once, kept or not; nil and freed ones are skipped. The memory goes when no graph and
// no other array shares it. Call it inside Do.
func Free(arrays ...*Array) {
	for _, a := range arrays {
		if a != nil && a.handle != nil {
			a.kept = false
			a.t.free([]*Array{a})
		}
	}
}

// free releases all arrays of the list that are neither kept nor freed.
func (t *Thread) free(arrays []*Array) {
	handles := make([]unsafe.Pointer, 0, len(arrays))
	for _, a := range arrays {
		if a.handle != nil && !a.kept {
			handles = append(handles, a.handle)
			a.handle = nil
		}
	}
	if len(handles) > 0 {
		cFree(t.frame.pointers(handles))
	}
}
