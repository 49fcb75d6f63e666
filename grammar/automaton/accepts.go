package automaton

import (
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/instance"
	"github.com/ingotml/ingot/internal/limits"
)

// Accepts reports whether the grammar matches some text of a JSON value, which instance.Read returned.
func (a *Automaton) Accepts(value any, o instance.Options) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ends, ok := instance.Ends(a, a.start(), value, o)
	if !ok {
		return false, expr.Errorf(expr.ErrLimit, "the instance takes more than %d steps to check", limits.GrammarChecks)
	}
	return slices.ContainsFunc(ends, func(s *state) bool { return s.accept }), nil
}

// After is after for an instance; repeats: an item that ends in the text repeats one before it.
func (a *Automaton) After(s *state, text string, repeats bool) (*state, bool) {
	if repeats {
		s = a.afterRepeated(s, []byte(text))
	} else {
		s = a.after(s, []byte(text))
	}
	return s, s != a.dead
}

// Compares reports whether the grammar has items that must differ.
func (a *Automaton) Compares() bool { return a.p.Unique != nil }

// Example returns a shortest text, or "" if it has more than the given number of bytes.
func (a *Automaton) Example(most int64) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.start()
	if s.cost > most {
		return ""
	}
	if a.p.Unique != nil {
		text, _ := a.completionOf(s, nil)
		return string(text)
	}
	for _, p := range s.places {
		if a.costOf(p) == s.cost {
			return string(a.shortestText(p))
		}
	}
	return ""
}
