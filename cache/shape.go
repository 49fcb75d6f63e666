package cache

import "slices"

// Shape describes the memory of a sequence's state. It is known before anything is computed.
type Shape struct {
	position int64       // bytes per position, in layers that keep all
	rings    []ringShape // by window
	sparse   []ringShape // of compressed layers, by the positions of an entry
	fixed    int64       // bytes that do not grow
}

type ringShape struct {
	window   int
	position int64 // bytes of a position, or of an entry
}

// Shape returns the shape of a sequence that has seen at least one token. It evaluates nothing.
func (s *Sequence) Shape() Shape {
	var shape Shape
	for _, l := range s.Layers {
		if l == nil {
			continue
		}
		if c, ok := l.(*Elsewhere); ok {
			shape.add(c.of)
			continue
		}
		state := l.State()
		switch c := l.(type) {
		case *KV:
			shape.position += c.slotBytes()
		case *Ring:
			add(&shape.rings, c.window, c.slotBytes())
		case *Compressed:
			add(&shape.sparse, c.rate, c.store.slotBytes())
		default:
			for _, a := range state {
				shape.fixed += int64(a.Bytes())
			}
		}
	}
	return shape
}

// add adds a layer that another rank has.
func (s *Shape) add(k Kind) {
	switch k.form {
	case full:
		s.position += k.bytes()
	case rotating:
		add(&s.rings, k.window, k.bytes())
	case compressed:
		add(&s.sparse, k.rate, k.bytes())
	default:
		s.fixed += k.bytes()
	}
}

// Plus returns the shape of two sequences that see the same tokens.
func (s Shape) Plus(o Shape) Shape {
	s.position += o.position
	s.fixed += o.fixed
	s.rings, s.sparse = slices.Clone(s.rings), slices.Clone(s.sparse)
	for _, r := range o.rings {
		add(&s.rings, r.window, r.position)
	}
	for _, r := range o.sparse {
		add(&s.sparse, r.window, r.position)
	}
	return s
}

func add(to *[]ringShape, window int, position int64) {
	i := slices.IndexFunc(*to, func(r ringShape) bool { return r.window == window })
	if i < 0 {
		i = len(*to)
		*to = append(*to, ringShape{window: window})
	}
	(*to)[i].position += position
}

// Bytes returns the most that the state of tokens tokens takes, the last rows of which come in one step: all positions,
// the entries of a [Compressed], and for a [Ring] what the step's rows attend to.
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
	for _, r := range s.sparse {
		n += r.position * int64(ceil(max(tokens/r.window, 1)))
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
