package grammar

import (
	"slices"
	"sync"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/instance"
	"github.com/ingotml/ingot/internal/limits"
)

// byteVocabulary has one token per byte: a text is accepted token by token exactly if its bytes are.
var byteVocabulary = sync.OnceValue(func() *Vocabulary {
	tokens := make([][]byte, 256)
	for b := range tokens {
		tokens[b] = []byte{byte(b)}
	}
	return NewVocabulary(tokens, nil)
})

// AcceptsJSON reports whether the grammar matches some text of a JSON value: its properties in any order that the
// grammar has, its numbers and strings in any spelling. White space in instance does not matter. An instance that is
// not JSON is ErrInvalid. The search is bounded by limits.GrammarChecks steps; beyond it the error is ErrLimit.
func (g *Grammar) AcceptsJSON(text []byte) (bool, error) {
	root, err := instance.Read(text)
	if err != nil {
		return false, err
	}
	a := g.automaton(byteVocabulary())
	a.mu.Lock()
	defer a.mu.Unlock()
	ends, ok := instance.Ends(a, a.start(), root,
		instance.Options{Orders: g.orders, Spelled: g.spelled, Steps: limits.GrammarChecks})
	if !ok {
		return false, expr.Errorf(ErrLimit, "the instance takes more than %d steps to check", limits.GrammarChecks)
	}
	return slices.ContainsFunc(ends, func(s *state) bool { return s.accept }), nil
}

// After is after for an instance; repeats: an item that ends in the text repeats one before it.
func (a *automaton) After(s *state, text string, repeats bool) (*state, bool) {
	if repeats {
		s = a.afterRepeated(s, []byte(text))
	} else {
		s = a.after(s, []byte(text))
	}
	return s, s != a.dead
}

// Compares reports whether the grammar has items that must differ.
func (a *automaton) Compares() bool { return a.p.unique != nil }
