package value

import (
	"errors"
	"fmt"

	"github.com/ingotml/ingot/internal/limits/fault"
)

// Errors that callers distinguish.
var (
	ErrRender = fault.Register(errors.New("template error"), fault.Kind{
		Name: "chat/jinja/value.ErrRender", Means: "rendering failed, or the template raised an exception",
		Rank: fault.Request + 6, Status: fault.Invalid,
	})
	ErrInput = fault.Register(errors.New("invalid template variables"), fault.Kind{
		Name: "chat/jinja/value.ErrInput", Means: "variables are not valid JSON, or not a JSON object",
		Rank: fault.Request + 7, Status: fault.Invalid,
	})
	ErrLimit = fault.Register(errors.New("template exceeds a limit"), fault.Kind{
		Name: "chat/jinja/value.ErrLimit", Means: "a template, or what it renders, exceeds a limit",
		Rank: fault.Request + 8, Status: fault.Invalid,
	})

	ErrSyntax = errors.New("template syntax error") // the template does not compile
)

// Error is an error of a template with its position.
type Error struct {
	Kind    string // the reference's exception: TypeError, UndefinedError, TemplateSyntaxError...
	Message string
	Line    int // from 1; 0: unknown
	is      error
}

// Error returns a single line.
func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("template line %d: %s: %s", e.Line, e.Kind, oneLine(e.Message))
	}
	return fmt.Sprintf("template: %s: %s", e.Kind, oneLine(e.Message))
}

// Unwrap returns ErrSyntax, ErrRender or ErrLimit.
func (e *Error) Unwrap() error { return e.is }

// oneLine replaces control characters, which a template's own message may contain, and bounds the length.
func oneLine(s string) string {
	const maxRunes = 500
	b := make([]rune, 0, len(s))
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			r = ' '
		}
		if b = append(b, r); len(b) == maxRunes {
			return string(b) + "..."
		}
	}
	return string(b)
}

// SyntaxError returns an error of a template's text, which wraps ErrSyntax.
func SyntaxError(line int, format string, args ...any) error {
	return &Error{Kind: "TemplateSyntaxError", Message: fmt.Sprintf(format, args...), Line: line, is: ErrSyntax}
}

// LimitError returns an error of a limit, which wraps ErrLimit.
func LimitError(format string, args ...any) error {
	return &Error{Kind: "LimitError", Message: fmt.Sprintf(format, args...), is: ErrLimit}
}

// Raise returns an exception of the reference.
func Raise(kind, format string, args ...any) error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), is: ErrRender}
}

// TypeError returns Python's TypeError.
func TypeError(format string, args ...any) error { return Raise("TypeError", format, args...) }

// ValueError returns Python's ValueError.
func ValueError(format string, args ...any) error { return Raise("ValueError", format, args...) }

// IsKind reports whether err is one of these exceptions.
func IsKind(err error, kinds ...string) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	for _, k := range kinds {
		if e.Kind == k {
			return true
		}
	}
	return false
}

// IsLookup reports whether the reference's item access ignores err.
func IsLookup(err error) bool {
	return IsKind(err, "TypeError", "LookupError", "IndexError", "KeyError")
}

// AtLine sets the line of an error that has none yet.
func AtLine(err error, line int) error {
	if e, ok := err.(*Error); ok && e.Line == 0 {
		e.Line = line
	}
	return err
}
