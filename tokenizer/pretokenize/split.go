package pretokenize

import "github.com/ingotml/ingot/tokenizer/pattern"

// behaviour is how a Split treats the delimiters that its pattern matches.
type behaviour int

const (
	removed            behaviour = iota // dropped
	isolated                            // a piece each
	mergedWithPrevious                  // appended to the piece before
	mergedWithNext                      // prepended to the piece after
	contiguous                          // a piece per run of delimiters
)

var behaviours = map[string]behaviour{
	"Removed": removed, "Isolated": isolated, "MergedWithPrevious": mergedWithPrevious,
	"MergedWithNext": mergedWithNext, "Contiguous": contiguous,
}

// split cuts text at the matches of a pattern, or, with invert, between them.
type split struct {
	p         pattern.Pattern
	behaviour behaviour
	invert    bool
}

// span is a range of the text; match tells whether it is a delimiter.
type span struct {
	start, end int
	match      bool
}

// Pieces calls emit for each non-empty piece.
func (p split) Pieces(s string, first bool, emit Emit) error {
	piece := func(start, end int) error {
		if start == end {
			return nil
		}
		return emit(s[start:end], first && start == 0)
	}
	if p.behaviour == isolated || p.behaviour == removed { // spans are independent of their neighbors
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

// spans covers s with the matches and the text between them. Empty matches are included, because they separate.
func (p split) spans(s string, emit func(span) error) error {
	last := 0
	err := p.p.Matches(s, func(start, end int) error {
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
		// From the right: a delimiter joins the text after it unless that is a delimiter too.
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
