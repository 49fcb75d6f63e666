package prompt

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/runtime"
)

// Budget limits the memory of all prompts that are being built.
type Budget interface {
	// Take reserves bytes of memory, and waits if necessary. The caller calls release once, unless there is an error.
	Take(ctx context.Context, bytes int64) (release func(), err error)
}

// unlimited is a Budget without a limit.
type unlimited struct{}

func (unlimited) Take(context.Context, int64) (func(), error) { return func() {}, nil }

// ErrLong reports a prompt whose text exceeds the limit.
var ErrLong = fault.Register(fmt.Errorf("%w: too long", runtime.ErrPrompt), fault.Kind{
	Name: "prompt.ErrLong", Means: "the prompt exceeds a limit, or the context length",
	Rank: fault.Request + 1, Status: fault.Invalid, Code: fault.CodeContext,
})

// TooLong returns an [ErrLong] that says only this: clients recognize the words of the API that they use.
func TooLong(format string, args ...any) error { return &long{fmt.Sprintf(format, args...)} }

type long struct{ text string }

func (e *long) Error() string { return e.text }

func (e *long) Unwrap() error { return ErrLong }

// checkText rejects texts that exceed the limit.
func checkText(bytes int64) error {
	if bytes > limits.PromptText {
		return fmt.Errorf("the prompt has %d bytes of text, the limit is %d: %w", bytes, limits.PromptText, ErrLong)
	}
	return nil
}

// renderLimits returns the limits of a render for an input of that many bytes.
func renderLimits(input int64) jinja.Limits {
	return jinja.Limits{
		Memory: limits.RenderMemory + limits.RenderMemoryPerByte*input,
		Output: min(limits.RenderOutput+limits.RenderOutputPerByte*input, limits.PromptText),
	}
}

// Render renders a template within a budget. Its limits depend on the size of the input and replace those of the
// request, except that of steps.
func Render(ctx context.Context, b Budget, t chat.Template, r chat.Request) (string, error) {
	size := r.Size()
	if err := checkText(size); err != nil {
		return "", err
	}
	steps := r.Options.Limits.Steps
	r.Options.Limits = renderLimits(size)
	r.Options.Limits.Steps = steps
	release, err := b.Take(ctx, r.Options.Limits.Memory+2*r.Options.Limits.Output) // the output buffer grows by doubling
	if err != nil {
		return "", err
	}
	defer release()
	return t.Render(ctx, r)
}

// Encode tokenizes a text within a budget.
func Encode(ctx context.Context, b Budget, text string,
	encode func(ctx context.Context, text string) ([]int32, error)) ([]int32, error) {
	if err := checkText(int64(len(text))); err != nil {
		return nil, err
	}
	release, err := b.Take(ctx, limits.EncodePerByte*int64(len(text)))
	if err != nil {
		return nil, err
	}
	defer release()
	return encode(ctx, text)
}
