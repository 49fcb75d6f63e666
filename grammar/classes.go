package grammar

import (
	"github.com/ingotml/ingot/grammar/expr"
)

// byteClasses partition the bytes: those that no set of a program distinguishes share a class.
type byteClasses struct {
	classOf [256]uint8
	classes int
	takes   []expr.ByteSet // by set of the program: its classes
}

// everyClass has all classes and more.
var everyClass = expr.ByteRange(0, 255)

// findClasses computes the classes of the program's sets.
func (a *automaton) findClasses() {
	var single expr.ByteSet // bytes that have a set of their own, and so a class
	for _, s := range a.p.sets {
		if s.Len() == 1 {
			single = single.Or(s)
		}
	}
	parts := []expr.ByteSet{}
	if rest := everyClass.Without(single); rest != (expr.ByteSet{}) {
		parts = append(parts, rest)
	}
	for _, s := range a.p.sets {
		s = s.Without(single)
		if s == (expr.ByteSet{}) {
			continue
		}
		for i := range parts {
			in := parts[i].And(s)
			if in != (expr.ByteSet{}) && in != parts[i] {
				parts[i] = parts[i].Without(in)
				parts = append(parts, in)
			}
		}
	}
	for b := range single.All() {
		parts = append(parts, expr.ByteRange(b, b))
	}
	a.classes = len(parts)
	for c, part := range parts {
		for b := range part.All() {
			a.classOf[b] = uint8(c)
		}
	}
	a.takes = make([]expr.ByteSet, len(a.p.sets))
	for i, s := range a.p.sets {
		for b := range s.All() {
			a.takes[i].Add(a.classOf[b])
		}
	}
}

// leadTo notes that the bytes of some classes lead from s to another state.
func (a *automaton) leadTo(s *state, classes expr.ByteSet, to *state) {
	for c := range classes.All() {
		if int(c) < a.classes {
			s.next[c] = to
		}
	}
}
