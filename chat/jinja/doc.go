// Package jinja renders chat templates: Jinja as jinja2 3.1.6 runs it in Hugging Face transformers' sandbox.
//
// A template is compiled once and may then be rendered by any number of goroutines at a time. The environment is the one that
// transformers 5.23 makes for chat templates: ImmutableSandboxedEnvironment with trim_blocks, lstrip_blocks, loop controls and
// the generation tag, its tojson filter, raise_exception and strftime_now. There is no loader, so include, import and extends
// fail as they do there.
//
// Values are Python's: objects keep the order of their keys, integers have any size, text is indexed by code point, and str()
// and repr() print what Python 3.11 prints. Lone surrogates, which UTF-8 cannot hold, become U+FFFD.
//
// Templates are untrusted: Limits bound steps, depth, output and memory, and a cancelled context ends a render.
package jinja

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ingotml/ingot/limits"
)

// Errors that a caller may want to tell apart.
var (
	ErrSyntax = errors.New("template syntax error")      // the template does not compile
	ErrRender = errors.New("template error")             // the template failed while it ran, or raised an exception itself
	ErrLimit  = errors.New("template exceeds a limit")   // the template wanted more than its Limits
	ErrInput  = errors.New("template variables damaged") // the variables are not the JSON object that they should be
)

// Error is what went wrong in a template and where.
type Error struct {
	Kind    string // name of the exception in the reference: TypeError, UndefinedError, TemplateSyntaxError...
	Message string
	Line    int // from 1; 0 where unknown
	is      error
}

// Error is one line.
func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("template line %d: %s: %s", e.Line, e.Kind, oneLine(e.Message))
	}
	return fmt.Sprintf("template: %s: %s", e.Kind, oneLine(e.Message))
}

// Unwrap gives the sentinel: ErrSyntax, ErrRender or ErrLimit.
func (e *Error) Unwrap() error { return e.is }

// oneLine keeps a template's own words from breaking the line of an error, and bounds them.
func oneLine(s string) string {
	const most = 500
	b := make([]rune, 0, len(s))
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			r = ' '
		}
		if b = append(b, r); len(b) == most {
			return string(b) + "..."
		}
	}
	return string(b)
}

// Options of a render.
type Options struct {
	Limits Limits           // zero fields mean those of DefaultLimits for the size of the variables
	Now    func() time.Time // clock of strftime_now; nil = time.Now
}

// Template is a compiled template.
type Template struct {
	root   *function
	blocks map[string]*blockNode
	levels int // of the tree
}

// Compile reads a template. Its error is an *Error that wraps ErrSyntax, or ErrLimit when it is too long, too deeply
// nested or has too many parts, or the context's. It takes time in proportion to the source.
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

// Render runs the template over variables; vars is not changed and may be shared between renders.
// Its error is an *Error that wraps ErrRender or ErrLimit, or the context's.
func (t *Template) Render(ctx context.Context, vars *Dict, o Options) (string, error) {
	return t.render(ctx, vars, o)
}

func syntaxError(line int, format string, args ...any) error {
	return &Error{Kind: "TemplateSyntaxError", Message: fmt.Sprintf(format, args...), Line: line, is: ErrSyntax}
}

func limitError(format string, args ...any) error {
	return &Error{Kind: "LimitError", Message: fmt.Sprintf(format, args...), is: ErrLimit}
}

// raise makes an error that is an exception of the reference.
func raise(kind, format string, args ...any) error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), is: ErrRender}
}

func typeError(format string, args ...any) error  { return raise("TypeError", format, args...) }
func valueError(format string, args ...any) error { return raise("ValueError", format, args...) }

// isKind tells whether an error is one of the named exceptions.
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

// Kinds of exceptions that the reference's item access swallows.
func isLookup(err error) bool {
	return isKind(err, "TypeError", "LookupError", "IndexError", "KeyError")
}

// atLine notes the line of an error that has none yet.
func atLine(err error, line int) error {
	if e, ok := err.(*Error); ok && e.Line == 0 {
		e.Line = line
	}
	return err
}
