// Package fault has the errors of tokenizers.
//
// Contract: every error is one line of bounded length and wraps one of the Err values.
package fault

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/ingotml/ingot/tokenizer/chars"
)

// The kinds of errors.
var (
	// ErrInvalid: the file violates its format or is inconsistent.
	ErrInvalid = errors.New("invalid tokenizer")
	// ErrUnsupported: the file is valid but needs something that this package does not implement.
	ErrUnsupported = errors.New("unsupported tokenizer")
	// ErrTimeout: the tokenizer takes too long on this text.
	ErrTimeout = errors.New("pattern takes too long")
	// ErrToken: the vocabulary cannot represent the text or does not have the id.
	ErrToken = errors.New("not in the vocabulary")
)

const maxErrorText = 400

// fault is an error with a complete text that wraps one of the Err values.
type fault struct {
	text string
	kind error
}

func (f *fault) Error() string { return f.text }
func (f *fault) Unwrap() error { return f.kind }

// Errorf returns a fault. Quotations may be of any size, so it cuts the middle out of a long text.
func Errorf(kind error, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if len(text) > maxErrorText {
		text = chars.ValidText(text[:maxErrorText/2]) + " ... " + chars.ValidText(text[len(text)-maxErrorText/2:])
	}
	return &fault{text, kind}
}

// Plain returns a name from a file unchanged, or quoted if it has unusual characters.
func Plain(name string) string {
	for i := range len(name) {
		if name[i] <= ' ' || name[i] >= 0x7f {
			return strconv.Quote(name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}
