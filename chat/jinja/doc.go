// Package jinja renders chat templates in Jinja, compatible with the sandbox of Hugging Face transformers.
//
// The reference, which comments name so, is jinja2 3.1.6 on Python 3.11 in the environment that transformers 5.23
// creates for chat templates: ImmutableSandboxedEnvironment with trim_blocks, lstrip_blocks, loop controls, the
// generation tag, its own tojson filter, raise_exception and strftime_now. There is no loader, so include, import and
// extends fail, as in the reference.
//
// Values behave like Python's: objects keep the order of their keys, integers have arbitrary size, strings are indexed
// by code point, and str() and repr() return what Python returns. Lone surrogates, which UTF-8 cannot encode, become
// U+FFFD.
//
// Templates are untrusted: Limits bound steps, depth, output and memory, and a cancelled context ends a render. A
// compiled Template is safe for concurrent use.
package jinja

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ingotml/ingot/limits"
)

// Errors that callers distinguish.
var (
	ErrSyntax = errors.New("template syntax error")      // the template does not compile
	ErrRender = errors.New("template error")             // the render failed, or the template raised an exception
	ErrLimit  = errors.New("template exceeds a limit")   // of the text, or of Limits
	ErrInput  = errors.New("invalid template variables") // not valid JSON, or not a JSON object
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

// Options are the options of a render.
type Options struct {
	Limits Limits           // zero fields: DefaultLimits for the size of the variables
	Now    func() time.Time // clock of strftime_now; nil: time.Now
}

// Template is a compiled template.
type Template struct {
	root   *function
	levels int // depth of the tree
}

// Compile parses and compiles a template in linear time. The error is an *Error that wraps ErrSyntax or ErrLimit, or
// the context's error. ErrLimit means that the text is too long, too deeply nested or has too many definitions.
func Compile(ctx context.Context, source string) (*Template, error) {
	if len(source) > limits.TemplateText {
		return nil, limitError("a template of %d bytes; at most %d", len(source), limits.TemplateText)
	}
	body, err := parse(ctx, source)
	if err != nil {
		return nil, err
	}
	levels, err := measure(ctx, body)
	if err != nil {
		return nil, err
	}
	t, err := compile(ctx, body)
	if err != nil {
		return nil, err
	}
	t.levels = levels
	return t, nil
}

// Render renders the template with vars, which it does not change, so concurrent renders may share it. The error is an
// *Error that wraps ErrRender or ErrLimit, or the context's error.
func (t *Template) Render(ctx context.Context, vars *Dict, o Options) (string, error) {
	return t.render(ctx, vars, o)
}

func syntaxError(line int, format string, args ...any) error {
	return &Error{Kind: "TemplateSyntaxError", Message: fmt.Sprintf(format, args...), Line: line, is: ErrSyntax}
}

func limitError(format string, args ...any) error {
	return &Error{Kind: "LimitError", Message: fmt.Sprintf(format, args...), is: ErrLimit}
}

// raise returns an exception of the reference.
func raise(kind, format string, args ...any) error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), is: ErrRender}
}

func typeError(format string, args ...any) error  { return raise("TypeError", format, args...) }
func valueError(format string, args ...any) error { return raise("ValueError", format, args...) }

// isKind reports whether err is one of these exceptions.
func isKind(err error, kinds ...string) bool {
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

// isLookup reports whether the reference's item access ignores err.
func isLookup(err error) bool {
	return isKind(err, "TypeError", "LookupError", "IndexError", "KeyError")
}

// atLine sets the line of an error that has none yet.
func atLine(err error, line int) error {
	if e, ok := err.(*Error); ok && e.Line == 0 {
		e.Line = line
	}
	return err
}
