package automaton

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

// classesOf computes the classes of a program's sets.
func classesOf(sets []expr.ByteSet) (c byteClasses) {
	var single expr.ByteSet // bytes that have a set of their own, and so a class
	for _, s := range sets {
		if s.Len() == 1 {
			single = single.Or(s)
		}
	}
	parts := []expr.ByteSet{}
	if rest := everyClass.Without(single); rest != (expr.ByteSet{}) {
		parts = append(parts, rest)
	}
	for _, s := range sets {
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
	c.classes = len(parts)
	for class, part := range parts {
		for b := range part.All() {
			c.classOf[b] = uint8(class)
		}
	}
	c.takes = make([]expr.ByteSet, len(sets))
	for i, s := range sets {
		for b := range s.All() {
			c.takes[i].Add(c.classOf[b])
		}
	}
	return c
}

// leadTo notes that the bytes of some classes lead from s to another state.
func (c *byteClasses) leadTo(s *state, classes expr.ByteSet, to *state) {
	for class := range classes.All() {
		if int(class) < c.classes {
			s.next[class] = to
		}
	}
}
