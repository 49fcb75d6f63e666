package cache

import "slices"

// Shape describes the memory of a sequence's state. It is known before anything is computed.
type Shape struct {
	position int64       // bytes per position, in layers that keep all
	rings    []ringShape // by window
	fixed    int64       // bytes that do not grow
}

type ringShape struct {
	window   int
	position int64 // bytes
}

// Shape returns the shape of a sequence that has seen at least one token. It evaluates nothing.
func (s *Sequence) Shape() Shape {
	var shape Shape
	for _, l := range s.Layers {
		if l == nil {
			continue
		}
		var n int64
		for _, a := range l.State() {
			n += int64(a.Bytes())
		}
		switch c := l.(type) {
		case *KV:
			shape.position += n / int64(c.k.Dim(2))
		case *Ring:
			shape.ring(c.window, n/int64(c.k.Dim(2)))
		default:
			shape.fixed += n
		}
	}
	return shape
}

// Plus returns the shape of two sequences that see the same tokens.
func (s Shape) Plus(o Shape) Shape {
	s.position += o.position
	s.fixed += o.fixed
	s.rings = slices.Clone(s.rings)
	for _, r := range o.rings {
		s.ring(r.window, r.position)
	}
	return s
}

func (s *Shape) ring(window int, position int64) {
	i := slices.IndexFunc(s.rings, func(r ringShape) bool { return r.window == window })
	if i < 0 {
		i = len(s.rings)
		s.rings = append(s.rings, ringShape{window: window})
	}
	s.rings[i].position += position
}

// Bytes returns the most that the state of tokens tokens takes, the last rows of which come in one step: all positions,
// and for a [Ring] what the step's rows attend to.
func (s Shape) Bytes(tokens, rows int) int64 {
	if tokens <= 0 {
		return 0
	}
	rows = min(max(rows, 1), tokens)
	n := s.fixed + s.position*int64(ceil(tokens))
	for _, r := range s.rings {
		slots := min(ceil(tokens), r.window)
		if tokens > r.window {
			// also for one row: storage left by a longer step stays until it is too large by as much
			slots = r.window - 1 + ceil(rows)
		}
		n += r.position * int64(slots)
	}
	return n
}

// Tokens returns how many tokens, at most most, fit into bytes.
func (s Shape) Tokens(bytes int64, most, rows int) int {
	if s.Bytes(most, rows) <= bytes {
		return most
	}
	fits, not := 0, most
	for not-fits > 1 {
		if n := (fits + not) / 2; s.Bytes(n, rows) <= bytes {
			fits = n
		} else {
			not = n
		}
	}
	return fits
}
