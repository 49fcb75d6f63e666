package grammar

import (
	"errors"
	"fmt"
	"strings"
)

// The kinds of errors that the errors of this package wrap.
var (
	// ErrInvalid: the source is malformed, or nothing can satisfy it.
	ErrInvalid = errors.New("invalid grammar")
	// ErrUnsupported: the source is valid, but a grammar cannot express it or this package does not implement it.
	ErrUnsupported = errors.New("not supported in a grammar")
	// ErrLimit: the source exceeds the limits.
	ErrLimit = errors.New("grammar too large")
	// ErrBudget: no text of the grammar fits into the number of tokens.
	ErrBudget = errors.New("too few tokens for any text of the grammar")
	// ErrToken: the grammar does not allow the token here.
	ErrToken = errors.New("token not allowed by the grammar")
	// ErrVocabulary: the vocabulary lacks tokens that every text of the grammar needs.
	ErrVocabulary = errors.New("the vocabulary cannot express the grammar")
)

func failure(kind error, format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{kind}, args...)...)
}

// clip shortens a quotation from a source for an error message.
func clip(s string) string {
	const most = 200
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
