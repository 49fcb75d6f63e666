package mlx

import "unsafe"

// Eval computes arrays and waits for them. Nil arrays are skipped.
func Eval(arrays ...*Array) { evaluate(arrays, false) }

// AsyncEval starts to compute arrays on a GPU; reading them waits. A failure in arrays that are never read is reported
// by whatever is evaluated next, so a caller that abandons such work must read it or call Synchronize first. On a CPU
// AsyncEval is Eval.
func AsyncEval(arrays ...*Array) { evaluate(arrays, true) }

func evaluate(arrays []*Array, async bool) {
	t, handles := handlesOf("Eval", arrays)
	if t == nil {
		return
	}
	p, n := t.frame.pointers(handles)
	t.must(prefix("Eval", cEval(p, n, async)))
}

// handlesOf skips nil arrays. The thread is nil if none is left.
func handlesOf(op string, arrays []*Array) (t *Thread, handles []unsafe.Pointer) {
	for _, a := range arrays {
		if a != nil {
			a.check(op)
			t, handles = a.t, append(handles, a.handle)
		}
	}
	return t, handles
}
