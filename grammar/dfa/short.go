package dfa

import (
	"errors"

	"github.com/ingotml/ingot/grammar/expr"
)

// Short reports whether d lacks texts that are too long to hold. It is then of no use where texts are excluded.
func (d *DFA) Short() bool { return d.short > 0 }

// Knows reports whether d decides about a text with this number of characters.
func (d *DFA) Knows(characters int) bool { return d.short == 0 || characters <= d.short }

// shorter returns the bound of what two automata know together.
func shorter(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Shorten restricts d to texts with at most this number of characters, and marks it as short.
func Shorten(d *DFA, most int) (*DFA, error) {
	limited, err := Length(d, 0, most)
	if err != nil {
		return nil, err
	}
	out := *limited
	out.short = shorter(out.short, max(most, 1))
	return &out, nil
}

// shortened are the lengths that are tried where an intersection has too many states.
var shortened = []int{64, 48, 32, 16}

// IntersectShort is Intersect, of shorter texts if that has too many states.
func IntersectShort(a, b *DFA) (*DFA, error) {
	both, err := Intersect(a, b)
	for i := 0; errors.Is(err, expr.ErrLimit) && i < len(shortened); i++ {
		var few *DFA
		if few, err = Shorten(a, shortened[i]); err == nil {
			both, err = Intersect(few, b)
		}
	}
	return both, err
}
