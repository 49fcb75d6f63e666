package jinja

import (
	"context"
	"time"

	"github.com/ingotml/ingot/chat/jinja/ast"
	"github.com/ingotml/ingot/chat/jinja/value"
	"github.com/ingotml/ingot/internal/limits"
)

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
		return nil, value.LimitError("a template of %d bytes; at most %d", len(source), limits.TemplateText)
	}
	body, err := ast.Parse(ctx, source)
	if err != nil {
		return nil, err
	}
	levels, err := ast.Measure(ctx, body)
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
