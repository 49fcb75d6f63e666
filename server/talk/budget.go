package talk

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/runtime"
)

// Budget is memory that prompts share.
type Budget interface {
	// Take waits for bytes of memory; give returns them and is called once. An error takes nothing.
	Take(ctx context.Context, bytes int64) (give func(), err error)
}

// free is a budget without bounds.
type free struct{}

func (free) Take(context.Context, int64) (func(), error) { return func() {}, nil }

// ErrLong says that a prompt's text is longer than any may be.
var ErrLong = fmt.Errorf("%w: it is too long", runtime.ErrPrompt)

// checkText refuses texts that are too long.
func checkText(bytes int64) error {
	if bytes > limits.PromptText {
		return fmt.Errorf("the prompt has %d bytes of text, and may have %d: %w", bytes, limits.PromptText, ErrLong)
	}
	return nil
}

// renderLimits bound a render by the size of its input.
func renderLimits(input int64) jinja.Limits {
	return jinja.Limits{
		Memory: limits.RenderMemory + limits.RenderMemoryPerByte*input,
		Output: min(limits.RenderOutput+limits.RenderOutputPerByte*input, limits.PromptText),
	}
}

// Render runs a template within limits that its input gives, and within a budget. It overrides the request's own limits.
func Render(ctx context.Context, b Budget, t chat.Template, r chat.Request) (string, error) {
	size := r.Size()
	if err := checkText(size); err != nil {
		return "", err
	}
	r.Options.Limits = renderLimits(size)
	give, err := b.Take(ctx, r.Options.Limits.Memory+2*r.Options.Limits.Output) // the output grows by doubling
	if err != nil {
		return "", err
	}
	defer give()
	return t.Render(ctx, r)
}

// Encode runs an encoder over a text, within a budget.
func Encode(ctx context.Context, b Budget, text string, encode func(text string) ([]int32, error)) ([]int32, error) {
	if err := checkText(int64(len(text))); err != nil {
		return nil, err
	}
	give, err := b.Take(ctx, limits.EncodePerByte*int64(len(text)))
	if err != nil {
		return nil, err
	}
	defer give()
	return encode(text)
}
