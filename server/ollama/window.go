package ollama

import (
	"cmp"
	"context"

	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// windowOptions say what to do when the context is full. Both are on unless a request turns them off, as for Ollama.
type windowOptions struct {
	Truncate *bool `json:"truncate"` // leave out the oldest messages of a prompt that does not fit
	Shift    *bool `json:"shift"`    // drop the oldest tokens when a response fills the context, and go on
}

// window is the context of a request.
type window struct {
	model             *server.Model
	truncates, shifts bool
	server.Shift      // Tokens is the most tokens of the response; <= 0: not limited
}

// defaultKeep is Ollama's default of num_keep.
const defaultKeep = 4

// window returns the context of a request to a model.
func (s *api) window(m *server.Model, w windowOptions, o params.Options) window {
	out := window{model: m, truncates: w.Truncate == nil || *w.Truncate, shifts: w.Shift == nil || *w.Shift}
	out.Context = s.core.Context(m)
	if o.NumCtx != nil && *o.NumCtx > 0 {
		out.Context = min(out.Context, *o.NumCtx)
	}
	of := m.Defaults()
	out.Keep, out.Tokens = defaultKeep, of.MaxTokens
	if keep := cmp.Or(o.NumKeep, of.NumKeep); keep != nil {
		out.Keep = *keep
	}
	if o.NumPredict != nil {
		out.Tokens = *o.NumPredict
	}
	if out.Keep < 0 {
		out.Keep = out.Context
	}
	if t := m.Tokenizer(); t != nil {
		if _, ok := t.BOS(); ok {
			out.Keep++
		}
	}
	return out
}

// prompt builds the prompt of a conversation. If it does not fit, the oldest messages are left out.
func (s *api) prompt(ctx context.Context, style *prompt.Style, c prompt.Conversation, w window) (*prompt.Prompt,
	error) {
	build := func(c prompt.Conversation) (*prompt.Prompt, error) { return s.core.MakePrompt(ctx, w.model, style, c) }
	if !w.truncates {
		return build(c)
	}
	return prompt.Shorten(ctx, c, build, func(p *prompt.Prompt) (bool, error) {
		n, err := w.model.CountPrompt(ctx, p.IDs, p.Pictures)
		return n < w.Context, err
	})
}

// fit makes a prompt that is still too long fit by dropping tokens. Clients look for "context length" in the error.
func (w window) fit(p *prompt.Prompt) error {
	if len(p.IDs) < w.Context {
		return nil
	}
	if !w.truncates || !w.shifts || len(p.Pictures) > 0 {
		return wire.BadRequest("the prompt has %d tokens, which exceeds the context length of %d: %v", len(p.IDs), w.Context,
			runtime.ErrPrompt)
	}
	p.IDs = w.Cut(p.IDs)
	return nil
}

// prepare says how a job's response goes on when it fills the context. Without num_predict it may have half as many
// tokens as the context: a model that does not stop would go on forever. A format and pictures do not survive a shift,
// and tokens to keep that fill more than half of the context would leave too little room for one.
func (w window) prepare(j *server.Job) {
	if w.Tokens <= 0 {
		w.Tokens = w.Context / 2
	}
	w.Keep = min(w.Keep, len(j.Request.Prompt))
	fits := w.Tokens <= w.Context-len(j.Request.Prompt)
	if w.shifts && !fits && w.Keep <= w.Context/2 && j.Request.Format.Kind == "" && len(j.Request.Pictures) == 0 {
		j.Shift = w.Shift
	}
}
