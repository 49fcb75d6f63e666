package cmd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/talk"
	"github.com/spf13/cobra"
)

// voice is a model that answers: one that is loaded in this process, or one that a server has.
type voice interface {
	// answer gives a question's answer as it comes. What was said before an error stands.
	answer(ctx context.Context, q question) iter.Seq2[said, error]
	// idsOnly tells whether the model has no text.
	idsOnly() bool
	close()
}

// question is what a model is asked: the turns of a conversation, or a prompt that goes to it as it is.
type question struct {
	turns      []chat.Message // behind the system text and the messages of the image; nil: there is no conversation
	system     string
	think      string // as --think has it
	prompt     prompt
	pictures   []runtime.Picture
	parameters map[string]any // by the names of a Modelfile, in place of the image's
	format     runtime.Format
	ignoreEOS  bool
	draft      string
	wantIDs    bool // of the tokens
}

// said is a piece of an answer.
type said struct {
	events []parse.Event
	ids    []int32
	done   string // why it has ended; "" before that
	stats  server.Stats
	damage error // why some of the text is shown as it is: a call of a tool that could not be read
}

// localVoice is a model in this process.
type localVoice struct {
	model   *runtime.Local
	style   *talk.Style
	request func(runtime.Defaults) runtime.Request // puts flags over the image's parameters
}

func (v *localVoice) close() { _ = v.model.Close() }

func (v *localVoice) idsOnly() bool { return v.model.Tokenizer() == nil }

func (v *localVoice) answer(ctx context.Context, q question) iter.Seq2[said, error] {
	return func(yield func(said, error) bool) {
		r, reader, err := v.prepare(ctx, q)
		if err != nil {
			yield(said{}, err)
			return
		}
		var last said
		for e, err := range v.model.Generate(ctx, r) {
			s := said{events: reader.Feed(e.Text), ids: e.IDs, stats: server.NewStats(e.Stats)}
			if !yield(s, err) || err != nil {
				return
			}
			last = said{done: string(e.Done), stats: s.stats}
		}
		last.events, last.damage = reader.Close()
		yield(last, nil)
	}
}

// prepare makes the request of a question.
func (v *localVoice) prepare(ctx context.Context, q question) (r runtime.Request, reader talk.Reader, err error) {
	d, err := v.model.Defaults().With(q.parameters)
	if err != nil {
		return r, reader, err
	}
	r = v.request(d)
	r.Format = q.format
	switch {
	case q.prompt.ids != nil:
		r.Prompt = q.prompt.ids
	case q.turns != nil:
		c, err := q.conversation(v.style)
		if err != nil {
			return r, reader, err
		}
		p, err := v.style.Begin(ctx, v.model, c)
		if err != nil {
			return r, reader, orRaw(err)
		}
		r.Prompt, r.Pictures, r.Special, reader = p.IDs, p.Pictures, p.Special, p.Reader
		r.Format.After = p.Thinking
	default:
		var text string
		if text, r.Pictures, err = v.model.ShowPictures(q.prompt.text, q.pictures); err == nil {
			r.Prompt, err = v.model.Encode(text)
		}
	}
	return r, reader, err
}

// orRaw names the way around a template that fails.
func orRaw(err error) error {
	if errors.Is(err, jinja.ErrRender) || errors.Is(err, jinja.ErrLimit) {
		return fmt.Errorf("%w; --raw gives the model the prompt as it is", err)
	}
	return err
}

// conversation is what the template gets.
func (q question) conversation(style *talk.Style) (talk.Conversation, error) {
	c := talk.Conversation{Pictures: q.pictures}
	now, err := clock("")
	if err != nil {
		return c, err
	}
	c.Request = chat.Request{AddGenerationPrompt: true, Options: jinja.Options{Now: now}}
	if q.system != "" {
		c.Messages = append(c.Messages, chat.Message{Role: "system", Content: q.system})
	}
	if style.Template != nil {
		for _, m := range style.Texts.Messages {
			c.Messages = append(c.Messages, chat.Message{Role: m.Role, Content: m.Content})
		}
	}
	c.Messages = append(c.Messages, q.turns...)
	if q.think != "" {
		think := q.think != "off"
		c.Think = &think
		if slices.Contains(thinkLevels, q.think) {
			c.ThinkLevel = q.think
		}
	}
	return c, nil
}

// voices opens the voices of a run, one at a time.
type voices struct {
	*app
	o       runOptions
	store   *manifest.Store
	request func(runtime.Defaults) runtime.Request
	local   bool // no server is asked
	prefix  bool // keep the state of past questions
	thread  *mlx.Thread
}

func (a *app) voices(c *cobra.Command, store *manifest.Store, o runOptions) *voices {
	return &voices{app: a, o: o, store: store, local: o.inProcess(c), request: o.request}
}

// open finds a server that has the model, or loads it.
func (v *voices) open(ctx context.Context, entry *manifest.Entry, style *talk.Style) (voice, error) {
	if !v.local {
		if s, err := v.findServer(ctx, entry, style); s != nil || err != nil {
			return s, err
		}
	}
	kv, err := v.o.kv.value()
	if err != nil {
		return nil, err
	}
	if v.thread == nil {
		if v.thread, err = v.openEngine(ctx, v.o.cpu); err != nil {
			return nil, err
		}
	}
	draft, err := runtime.ParseDraft(v.o.draft)
	if err != nil {
		return nil, err
	}
	options := runtime.Options{Float32: v.o.float32, KV: kv, Draft: runtime.DraftOptions{Off: draft.Mode == runtime.DraftOff}}
	if v.prefix {
		options.PrefixCache = -1 // as much as there is room for
	}
	model, err := runtime.Load(ctx, v.thread, v.store, entry, options)
	if err != nil {
		return nil, err
	}
	return &localVoice{model, style, v.request}, nil
}

func (v *voices) close() {
	if v.thread != nil {
		v.thread.Close()
	}
}
