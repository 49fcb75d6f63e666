package mlx

import (
	"slices"
	"unsafe"
)

// scope owns the arrays made while it is the innermost one.
type scope struct {
	outer  *scope
	arrays []*Array
}

// Scope runs fn and then frees the arrays made in it except kept ones, even if fn panics. Call it inside Do.
func (t *Thread) Scope(fn func()) {
	s := &scope{outer: t.scope}
	t.scope = s
	defer func() {
		t.scope = s.outer
		t.free(s.arrays)
	}()
	fn()
}

// Result runs fn in a scope of its own and returns the array that fn returns, in the scope of the caller. All other
// arrays made in fn are freed, even if fn panics, so what the result is computed from lives only until it is used: the
// memory of a forward pass is that of its widest part, not of all its parts. Call it inside Do.
func (t *Thread) Result(fn func() *Array) (result *Array) {
	t.Scope(func() {
		if result = fn(); result != nil && !result.kept {
			outer := t.scope.outer
			t.scope.arrays = slices.DeleteFunc(t.scope.arrays, func(a *Array) bool { return a == result })
			outer.arrays = append(outer.arrays, result)
		}
	})
	return result
}

// Keep removes arrays from their scopes: they live until Free. Nil arrays are skipped. It returns the first array.
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

// Free releases arrays at once, kept or not. Nil and freed arrays are skipped. The memory is released once no graph and
// no other array shares it. Call it inside Do.
func Free(arrays ...*Array) {
	for _, a := range arrays {
		if a != nil && a.handle != nil {
			a.kept = false
			a.t.free([]*Array{a})
		}
	}
}

// free releases the arrays that are neither kept nor already freed.
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
