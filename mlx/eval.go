package mlx

import "unsafe"

// Eval computes arrays and waits for them. None given, or only nil ones, is no work and no error.
func Eval(arrays ...*Array) { evaluate(arrays, false) }

// AsyncEval starts to compute arrays on a GPU; reading them waits. Of arrays that are never read a failure shows up in
// whatever is evaluated next, so whoever gives such work up must read it or synchronize first. On a CPU it is Eval.
func AsyncEval(arrays ...*Array) { evaluate(arrays, true) }

func evaluate(arrays []*Array, async bool) {
	t, handles := handlesOf("Eval", arrays)
	if t == nil {
		return
	}
	p, n := t.frame.pointers(handles)
	t.must(prefix("Eval", cEval(p, n, async)))
}

// handlesOf skips nil arrays; the thread is nil when none is left.
func handlesOf(op string, arrays []*Array) (t *Thread, handles []unsafe.Pointer) {
	for _, a := range arrays {
		if a != nil {
			a.check(op)
			t, handles = a.t, append(handles, a.handle)
		}
	}
	return t, handles
}
