package grammar

import (
	"github.com/ingotml/ingot/grammar/automaton"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/vocabulary"
)

// The kinds of errors that the errors of this package wrap.
var (
	// ErrInvalid: the source is malformed, or nothing can satisfy it.
	ErrInvalid = expr.ErrInvalid
	// ErrEmpty: a schema is well-formed, but no value satisfies it. It wraps ErrInvalid.
	ErrEmpty = expr.ErrEmpty
	// ErrUnsupported: the source is valid, but a grammar cannot express it or this package does not implement it.
	ErrUnsupported = expr.ErrUnsupported
	// ErrLimit: the source exceeds the limits.
	ErrLimit = expr.ErrLimit
	// ErrBudget: no text of the grammar fits into the number of tokens.
	ErrBudget = automaton.ErrBudget
	// ErrToken: the grammar does not allow the token here.
	ErrToken = automaton.ErrToken
	// ErrVocabulary: the vocabulary lacks tokens that every text of the grammar needs.
	ErrVocabulary = vocabulary.ErrVocabulary
)
