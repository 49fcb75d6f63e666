package tokenizer

import (
	"errors"
	"fmt"
	"strconv"
)

// Errors that this package wraps.
var (
	// ErrInvalid: the file contradicts its format or itself.
	ErrInvalid = errors.New("invalid tokenizer")
	// ErrUnsupported: the file is valid but needs something that this package does not implement.
	ErrUnsupported = errors.New("unsupported tokenizer")
	// ErrTimeout: a pattern of the tokenizer took too long on this text.
	ErrTimeout = errors.New("pattern takes too long")
	// ErrToken: text or ids that this vocabulary cannot represent.
	ErrToken = errors.New("not in the vocabulary")
)

const maxErrorText = 400

// fault is an error whose text is complete and that is one of the Err values for errors.Is.
type fault struct {
	text string
	kind error
}

func (f *fault) Error() string { return f.text }
func (f *fault) Unwrap() error { return f.kind }

// failure makes a fault. What it quotes may be of any size: the middle of a long text is left out.
func failure(kind error, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if len(text) > maxErrorText {
		text = validText(text[:maxErrorText/2]) + " ... " + validText(text[len(text)-maxErrorText/2:])
	}
	return &fault{text, kind}
}

// plain is a name from a file as it is, quoted where it is unusual.
func plain(name string) string {
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
