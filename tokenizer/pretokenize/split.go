package pretokenize

import (
	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/pattern"
)

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
func (p split) Pieces(m *work.Meter, s string, first bool, emit Emit) error {
	piece := func(start, end int) error {
		if start == end {
			return nil
		}
		return emit(s[start:end], first && start == 0)
	}
	if p.behaviour == isolated || p.behaviour == removed { // spans are independent of their neighbors
		return p.spans(m, s, func(x span) error {
			if x.match && p.behaviour == removed {
				return nil
			}
			return piece(x.start, x.end)
		})
	}
	var group *span // of spans that belong together, with match of its last one
	err := p.spans(m, s, func(x span) error {
		if group != nil && p.behaviour.joins(group.match, x.match) {
			group.end, group.match = x.end, x.match
			return nil
		}
		before := group
		group = &x
		if before == nil {
			return nil
		}
		return piece(before.start, before.end)
	})
	if err != nil || group == nil {
		return err
	}
	return piece(group.start, group.end)
}

// spans covers s with the matches and the text between them. Empty matches are included, because they separate.
func (p split) spans(m *work.Meter, s string, emit func(span) error) error {
	last := 0
	err := p.p.Matches(m, s, func(start, end int) error {
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

// joins reports whether a span joins the one before it. match says of each whether it is a delimiter.
func (b behaviour) joins(before, match bool) bool {
	switch b {
	case mergedWithPrevious:
		return match && !before
	case mergedWithNext:
		return before && !match
	}
	return before == match // contiguous
}
