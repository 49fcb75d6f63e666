package tokenizer

// behaviour is what a Split does with the delimiters that its pattern matches.
type behaviour int

const (
	removed            behaviour = iota // dropped
	isolated                            // a piece each
	mergedWithPrevious                  // the end of the piece before
	mergedWithNext                      // the start of the piece after
	contiguous                          // a piece for each run of them
)

var behaviours = map[string]behaviour{
	"Removed": removed, "Isolated": isolated, "MergedWithPrevious": mergedWithPrevious,
	"MergedWithNext": mergedWithNext, "Contiguous": contiguous,
}

// split cuts text at the matches of a pattern, or with invert between them.
type split struct {
	p         pattern
	behaviour behaviour
	invert    bool
}

// span is a stretch of the text and whether it counts as a delimiter.
type span struct {
	start, end int
	match      bool
}

// pieces calls emit for each piece that is not empty.
func (p split) pieces(s string, first bool, emit emitPiece) error {
	piece := func(start, end int) error {
		if start == end {
			return nil
		}
		return emit(s[start:end], first && start == 0)
	}
	if p.behaviour == isolated || p.behaviour == removed { // no need to see the neighbours
		return p.spans(s, func(x span) error {
			if x.match && p.behaviour == removed {
				return nil
			}
			return piece(x.start, x.end)
		})
	}
	var all []span
	err := p.spans(s, func(x span) error {
		all = append(all, x)
		return nil
	})
	if err != nil {
		return err
	}
	for _, x := range p.behaviour.join(all) {
		if err := piece(x.start, x.end); err != nil {
			return err
		}
	}
	return nil
}

// spans covers s with matches and what is between them. Empty matches stay: they separate.
func (p split) spans(s string, emit func(span) error) error {
	last := 0
	err := p.p.matches(s, func(start, end int) error {
		if last != start {
			if err := emit(span{last, start, p.invert}); err != nil {
				return err
			}
		}
		last = end
		return emit(span{start, end, !p.invert})
	})
	if err != nil || last == len(s) {
		return err
	}
	return emit(span{last, len(s), p.invert})
}

// join merges spans in place.
func (b behaviour) join(all []span) []span {
	if b == mergedWithNext {
		// From the right: a delimiter joins what follows it unless that is a delimiter.
		n := len(all)
		matched := false
		for i := len(all) - 1; i >= 0; i-- {
			x := all[i]
			if x.match && !matched && n < len(all) {
				all[n].start = x.start
			} else {
				n--
				all[n] = x
			}
			matched = x.match
		}
		return all[n:]
	}
	n := 0
	matched := false
	for _, x := range all {
		joins := x.match && !matched // mergedWithPrevious
		if b == contiguous {
			joins = x.match == matched
		}
		if joins && n > 0 {
			all[n-1].end = x.end
		} else {
			all[n] = x
			n++
		}
		matched = x.match
	}
	return all[:n]
}
