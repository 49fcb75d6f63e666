package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/input"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
)

// The input prompts of a session.
const (
	promptFirst = ">>> "
	promptMore  = "... "
)

// session is an interactive conversation on a terminal.
type session struct {
	*cli.App
	o     runOptions
	store *store.Store
	entry *store.Entry
	style *prompt.Style

	read    func(ctx context.Context, prompt string) (string, error) // reads input up to Enter
	open    func(ctx context.Context, entry *store.Entry, style *prompt.Style) (backend, error)
	history *terminal.History
	columns func() int // width of the terminal; nil: do not wrap

	backend    backend // nil: opened on demand
	system     string
	format     runtime.Format
	parameters map[string]any    // set by flags or the user, in the types of an image's parameters
	messages   []chat.Message    // follow the messages of the image
	pictures   []runtime.Picture // of the messages, with their indices as IDs
}

// begin resets the session to a model without messages beyond the image's own.
func (s *session) begin(entry *store.Entry, style *prompt.Style, parameters map[string]any) error {
	set, err := plainParameters(parameters)
	if err != nil {
		return err
	}
	s.entry, s.style, s.system, s.parameters = entry, style, style.Texts.System, set
	s.clear()
	return nil
}

// clear removes all messages.
func (s *session) clear() { s.messages, s.pictures = []chat.Message{}, nil }

// plainParameters converts parameters to the types that reading an image yields: numbers keep their digits.
func plainParameters(set map[string]any) (map[string]any, error) {
	text, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var plain map[string]any
	err = d.Decode(&plain)
	if plain == nil {
		plain = map[string]any{}
	}
	return plain, err
}

// effective returns the image's parameters overridden by the session's.
func (s *session) effective() map[string]any {
	all := map[string]any{}
	maps.Copy(all, s.style.Texts.Parameters)
	maps.Copy(all, s.parameters)
	return all
}

// send sends a message and shows the response until ctx is canceled. If there is no response, it removes the message.
func (s *session) send(ctx context.Context, text string) error {
	text, paths, missing := input.TakePictures(text)
	for _, path := range missing {
		s.Note("note: file %s does not exist: the path stays in the text", path)
	}
	pictures, err := input.Pictures(paths)
	if err != nil {
		return err
	}
	messages, shown := len(s.messages), len(s.pictures)
	for _, p := range pictures {
		p.ID = len(s.pictures)
		s.pictures = append(s.pictures, p)
	}
	s.messages = append(s.messages, prompt.UserTurn(text, len(pictures)))
	result, err := s.ask(ctx)
	stopped := err != nil && ctx.Err() != nil
	if stopped && result.Text != "" || err == nil {
		s.messages = append(s.messages, result.message())
	} else {
		s.messages, s.pictures = s.messages[:messages], s.pictures[:shown]
	}
	if stopped {
		return nil
	}
	return err
}

// ask generates and shows the response to the messages so far.
func (s *session) ask(ctx context.Context) (result runJSON, err error) {
	if err := s.openBackend(ctx); err != nil {
		return result, err
	}
	w := newResponseWriter(s.App, &result, s.o)
	out := &terminal.Wrapper{To: s.Out.Drawing(), Columns: s.columns}
	w.out = out
	if w.thoughts != nil {
		w.thoughts = out
	}
	if w.marks != nil {
		w.marks = s.Out.Drawing()
	}
	r := modelRequest{
		turns:      s.messages,
		pictures:   s.pictures,
		system:     s.system,
		think:      s.o.think,
		format:     s.format,
		parameters: s.parameters,
		ignoreEOS:  s.o.ignoreEOS,
		draft:      s.o.draft,
	}
	err = collect(s.App, s.backend.generate(ctx, r), w, s.o)
	if err != nil && (w.printed || w.thinking) { // later output must start on a new line
		_ = w.end()
	}
	if errors.Is(err, errServerGone) {
		s.closeBackend() // the next message looks for a server again
	}
	return result, err
}

// openBackend opens the model if it is not open.
func (s *session) openBackend(ctx context.Context) (err error) {
	if s.backend == nil {
		s.backend, err = s.open(ctx, s.entry, s.style)
	}
	return err
}

// closeBackend closes the model.
func (s *session) closeBackend() {
	if s.backend != nil {
		s.backend.close()
		s.backend = nil
	}
}

// message converts the response to a message of the conversation.
func (r runJSON) message() chat.Message {
	m := chat.Message{Role: "assistant", Content: r.Text, Reasoning: r.Thinking}
	for _, c := range r.ToolCalls {
		call := chat.NewCall(c.ID, c.Name, string(c.Arguments))
		m.ToolCalls = append(m.ToolCalls, call)
	}
	return m
}

// load switches to another model. If that fails, the session keeps its model.
func (s *session) load(ctx context.Context, arg string) error {
	name, err := manifest.ParseName(arg)
	if err != nil {
		return err
	}
	entry, err := s.store.Resolve(ctx, name)
	if err != nil {
		return err
	}
	style, err := models.OpenStyle(s.store, entry)
	if err == nil {
		err = style.Ready(ctx, chat.Request{})
	}
	if err != nil {
		return err
	}
	s.closeBackend() // memory may suffice for only one model
	b, err := s.open(ctx, entry, style)
	if err != nil {
		return err
	}
	s.backend = b
	if err := s.begin(entry, style, nil); err != nil {
		return err
	}
	return s.showMessages()
}

// showMessages shows the messages of the image.
func (s *session) showMessages() error {
	out := &terminal.Wrapper{To: s.Out.Drawing(), Columns: s.columns}
	for _, m := range s.style.Texts.Messages {
		text := m.Content + "\n\n"
		if m.Role == "user" {
			text = promptFirst + m.Content + "\n"
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
	}
	return nil
}
