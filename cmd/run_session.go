package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/talk"
)

// The prompts of a session.
const (
	promptFirst = ">>> "
	promptMore  = "... "
)

// session is a conversation that a user leads on a terminal.
type session struct {
	*app
	o     runOptions
	store *manifest.Store
	entry *manifest.Entry
	style *talk.Style

	read    func(ctx context.Context, prompt string) (string, error) // what the user writes up to Enter
	open    func(ctx context.Context, entry *manifest.Entry, style *talk.Style) (voice, error)
	history *terminal.History
	columns func() int // of the terminal; nil does not wrap answers

	voice      voice // nil: opened when it is needed
	system     string
	format     runtime.Format
	parameters map[string]any    // that flags or the user have set, as an image's are read
	messages   []chat.Message    // behind those that the image has
	pictures   []runtime.Picture // of the messages, with their indices as IDs
}

// begin makes it a session with a model that has said no more than its image does.
func (s *session) begin(entry *manifest.Entry, style *talk.Style, parameters map[string]any) error {
	set, err := plainParameters(parameters)
	if err != nil {
		return err
	}
	s.entry, s.style, s.system, s.parameters = entry, style, style.Texts.System, set
	s.clear()
	return nil
}

// clear forgets what was said.
func (s *session) clear() { s.messages, s.pictures = []chat.Message{}, nil }

// plainParameters are parameters as they are read from an image, where numbers keep their digits.
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

// effective are the image's parameters with the session's in their place.
func (s *session) effective() map[string]any {
	all := map[string]any{}
	maps.Copy(all, s.style.Texts.Parameters)
	maps.Copy(all, s.parameters)
	return all
}

// say sends a message and shows the answer, which ends when ctx does. What could not be answered is taken back.
func (s *session) say(ctx context.Context, text string) error {
	text, paths, missing := takePictures(text)
	for _, path := range missing {
		s.note("there is no file %s: the path is a part of the text", path)
	}
	pictures, err := readPictures(paths)
	if err != nil {
		return err
	}
	said, seen := len(s.messages), len(s.pictures)
	for _, p := range pictures {
		p.ID = len(s.pictures)
		s.pictures = append(s.pictures, p)
	}
	s.messages = append(s.messages, userTurn(text, len(pictures)))
	result, err := s.ask(ctx)
	stopped := err != nil && ctx.Err() != nil
	if stopped && result.Text != "" || err == nil {
		s.messages = append(s.messages, result.message())
	} else {
		s.messages, s.pictures = s.messages[:said], s.pictures[:seen]
	}
	if stopped {
		return nil
	}
	return err
}

// ask shows the answer to what was said so far.
func (s *session) ask(ctx context.Context) (result runJSON, err error) {
	if err := s.wake(ctx); err != nil {
		return result, err
	}
	w := s.answer(&result, s.o)
	out := &terminal.Wrapper{To: s.out.Drawing(), Columns: s.columns}
	w.out = out
	if w.thoughts != nil {
		w.thoughts = out
	}
	if w.marks != nil {
		w.marks = s.out.Drawing()
	}
	q := question{turns: s.messages, pictures: s.pictures, system: s.system, think: s.o.think, format: s.format, parameters: s.parameters, ignoreEOS: s.o.ignoreEOS, draft: s.o.draft}
	err = s.hear(s.voice.answer(ctx, q), w, s.o)
	if err != nil && (w.printed || w.thinking) { // what follows stands at the beginning of a line
		_ = w.end()
	}
	if errors.Is(err, errServerGone) {
		s.sleep() // the next question looks for a server anew
	}
	return result, err
}

// wake opens the model.
func (s *session) wake(ctx context.Context) (err error) {
	if s.voice == nil {
		s.voice, err = s.open(ctx, s.entry, s.style)
	}
	return err
}

// sleep closes it.
func (s *session) sleep() {
	if s.voice != nil {
		s.voice.close()
		s.voice = nil
	}
}

// message is the answer as later questions have it.
func (r runJSON) message() chat.Message {
	m := chat.Message{Role: "assistant", Content: r.Text, Reasoning: r.Thinking}
	for _, c := range r.ToolCalls {
		m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: c.ID, Name: c.Name, Arguments: chat.Arguments(string(c.Arguments))})
	}
	return m
}

// load goes on with another model. Where that cannot be, the session stays as it is.
func (s *session) load(ctx context.Context, arg string) error {
	name, err := manifest.ParseName(arg)
	if err != nil {
		return err
	}
	entry, err := s.store.Resolve(ctx, name)
	if err != nil {
		return err
	}
	style, err := openStyle(s.store, entry)
	if err == nil {
		err = style.ReadTemplate(ctx, s.store, entry)
	}
	if err != nil {
		return err
	}
	s.sleep() // there may be room for one model only
	v, err := s.open(ctx, entry, style)
	if err != nil {
		return err
	}
	s.voice = v
	if err := s.begin(entry, style, nil); err != nil {
		return err
	}
	return s.showMessages()
}

// showMessages shows what the image has said.
func (s *session) showMessages() error {
	out := &terminal.Wrapper{To: s.out.Drawing(), Columns: s.columns}
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
