package expr

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/clip"
)

// The kinds of errors in a source.
var (
	ErrInvalid     = errors.New("invalid grammar")
	ErrUnsupported = errors.New("not supported in a grammar")
	ErrLimit       = errors.New("grammar too large")
)

// ErrEmpty: the schema is well-formed, but no value satisfies it. It wraps ErrInvalid.
var ErrEmpty = fmt.Errorf("%w: no value satisfies the schema", ErrInvalid)

// Errorf returns an error that wraps kind, whose text begins the error's.
func Errorf(kind error, format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{kind}, args...)...)
}

// CheckSource refuses the source of a grammar that is too long or not UTF-8.
func CheckSource(source string) error {
	if len(source) > limits.GrammarSource {
		return Errorf(ErrLimit, "the grammar has %d bytes; at most %d are allowed", len(source), limits.GrammarSource)
	}
	if !utf8.ValidString(source) {
		return Errorf(ErrInvalid, "the grammar is not UTF-8")
	}
	return nil
}

// Clip shortens a quotation from a source for an error message.
func Clip(s string) string { return clip.Bytes(s, 200) }
