package mlx

import (
	"fmt"
	"math"
)

// End as the stop of a Range means the end of the axis. It differs from 0, which gives an empty slice.
const End = math.MinInt

// A Span selects positions of one axis.
type Span struct {
	start, stop, step int
	single            bool // only position start, which must exist
}

// All selects the whole axis.
func All() Span { return Span{0, End, 1, false} }

// At selects position i and keeps the axis, with length 1.
func At(i int) Span { return Span{i, 0, 1, true} }

// Range selects positions start to stop, excluding stop. Negative positions count from the end of the axis.
func Range(start, stop int) Span { return Span{start, stop, 1, false} }

// Strided selects every step-th position of Range(start, stop). step must be positive.
func Strided(start, stop, step int) Span { return Span{start, stop, step, false} }

// resolve returns the span's bounds on an axis of length n, clamped as in Python.
func (s Span) resolve(n int) (start, stop int) {
	clamp := func(i int) int {
		if i < 0 {
			i += n
		}
		return max(0, min(i, n))
	}
	start, stop = clamp(s.start), n
	if s.single {
		stop = start + 1
	} else if s.stop != End {
		stop = clamp(s.stop)
	}
	return start, max(start, stop)
}

func resolve(op string, x *Array, spans []Span) (start, stop, step []int) {
	x.check(op)
	if len(spans) != x.Rank() {
		panic(&Error{Message: fmt.Sprintf("%s(%v): %d spans for %d axes", op, x, len(spans), x.Rank())})
	}
	for i, s := range spans {
		if s.step < 1 {
			panic(&Error{Message: fmt.Sprintf("%s(%v): step %d of axis %d is not positive", op, x, s.step, i)})
		}
		if n := x.shape[i]; s.single && (s.start >= n || s.start < -n) {
			panic(&Error{Message: fmt.Sprintf("%s(%v): axis %d has no position %d", op, x, i, s.start)})
		}
		b, e := s.resolve(x.shape[i])
		start, stop, step = append(start, b), append(stop, e), append(step, s.step)
	}
	return start, stop, step
}

// Slice returns a part of x, given one span per axis.
func Slice(x *Array, spans ...Span) *Array {
	start, stop, step := resolve("Slice", x, spans)
	return slice(x, start, stop, step...)
}

// SliceUpdate returns x with a part replaced by update, given one span per axis. update broadcasts to the part.
func SliceUpdate(x, update *Array, spans ...Span) *Array {
	start, stop, step := resolve("SliceUpdate", x, spans)
	return sliceUpdate(x, update, start, stop, step...)
}

// SliceAxis slices one axis and keeps the others whole.
func SliceAxis(x *Array, axis int, span Span) *Array {
	x.check("SliceAxis")
	if axis < 0 {
		axis += x.Rank()
	}
	spans := make([]Span, x.Rank())
	for i := range spans {
		spans[i] = All()
	}
	if axis < 0 || axis >= len(spans) {
		panic(&Error{Message: fmt.Sprintf("SliceAxis(%v): no axis %d", x, axis)})
	}
	spans[axis] = span
	return Slice(x, spans...)
}
