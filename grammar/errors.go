package grammar

import (
	"errors"
	"fmt"
	"strings"
)

// What the errors of this package wrap.
var (
	// ErrInvalid: the source contradicts its own syntax, or nothing can satisfy it.
	ErrInvalid = errors.New("invalid grammar")
	// ErrUnsupported: the source is valid but holds what a grammar cannot express or this package does not implement.
	ErrUnsupported = errors.New("not supported in a grammar")
	// ErrLimit: the source is larger than the limits.
	ErrLimit = errors.New("grammar too large")
	// ErrBudget: no text of the grammar fits the number of tokens.
	ErrBudget = errors.New("too few tokens for any text of the grammar")
	// ErrToken: a token that the grammar does not allow here.
	ErrToken = errors.New("token not allowed by the grammar")
	// ErrVocabulary: the tokens of a model cannot write any text of the grammar.
	ErrVocabulary = errors.New("the vocabulary cannot write the grammar")
)

func failure(kind error, format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{kind}, args...)...)
}

// clip shortens what an error quotes of a source.
func clip(s string) string {
	const most = 200
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
