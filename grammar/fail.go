package grammar

import (
	"errors"
	"fmt"
	"strings"
)

// The kinds of errors in a source.
var (
	errInvalid     = errors.New("invalid grammar")
	errUnsupported = errors.New("not supported in a grammar")
	errLimit       = errors.New("grammar too large")
)

// failure returns an error that wraps kind, whose text begins the error's.
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
