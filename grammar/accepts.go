package grammar

import (
	"sync"

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
	return g.automaton(byteVocabulary()).Accepts(root,
		instance.Options{Orders: g.orders, Spelled: g.spelled, Steps: limits.GrammarChecks})
}
