package run

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/modelfile/parameters"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/server"
	"github.com/spf13/cobra"
)

// backend generates responses with a model, either in this process or on a server.
type backend interface {
	// generate returns the response as a sequence of parts. Parts before an error are valid.
	generate(ctx context.Context, r modelRequest) iter.Seq2[responsePart, error]
	// idsOnly reports whether the model has no tokenizer.
	idsOnly() bool
	close()
}

// modelRequest is a request to a model: the turns of a conversation, or a raw prompt.
type modelRequest struct {
	turns      []chat.Message // follow the system text and messages of the image; nil: a raw prompt
	system     string
	think      string // value of --think
	prompt     promptInput
	pictures   []runtime.Picture
	parameters map[string]any // by Modelfile name; override the image's
	format     runtime.Format
	ignoreEOS  bool
	draft      string
	wantIDs    bool // return token ids
}

// responsePart is a part of a streamed response.
type responsePart struct {
	events []parse.Event
	ids    []int32
	done   string // finish reason; "" before the end
	stats  server.Stats
	// leftOut says, at the end, what a best effort did not enforce of the format.
	leftOut []string
	damage  error // a tool call could not be parsed and is passed on as text
}

// localBackend runs a model in this process.
type localBackend struct {
	model   *batch.Engine
	style   *prompt.Style
	request func(runtime.Defaults) runtime.Request // applies the flags to the image's parameters
}

func (b *localBackend) close() { _ = b.model.Close() }

func (b *localBackend) idsOnly() bool { return b.model.Processor().Tokenizer() == nil }

func (b *localBackend) generate(ctx context.Context, request modelRequest) iter.Seq2[responsePart, error] {
	return func(yield func(responsePart, error) bool) {
		r, reader, err := b.prepare(ctx, request)
		if err != nil {
			yield(responsePart{}, err)
			return
		}
		var last responsePart
		for e, err := range b.model.Generate(ctx, r) {
			part := responsePart{events: reader.Feed(e.Text), ids: e.IDs, stats: server.NewStats(e.Stats)}
			if !yield(part, err) || err != nil {
				return
			}
			last = responsePart{done: string(e.Done), stats: part.stats, leftOut: e.LeftOut}
		}
		last.events, last.damage = reader.Close()
		yield(last, nil)
	}
}

// prepare converts a request for the runtime.
func (b *localBackend) prepare(
	ctx context.Context, q modelRequest,
) (r runtime.Request, reader prompt.Reader, err error) {
	set, err := parameters.Of(q.parameters)
	if err != nil {
		return r, reader, err
	}
	r = b.request(b.model.Processor().Defaults().With(set))
	r.Format = q.format
	switch {
	case q.prompt.ids != nil:
		r.Prompt = q.prompt.ids
	case q.turns != nil:
		c, err := q.conversation(b.style)
		if err != nil {
			return r, reader, err
		}
		p, err := b.style.Begin(ctx, b.model.Processor(), c)
		if err != nil {
			return r, reader, orRaw(err)
		}
		r.Prompt, r.Pictures, r.Special, reader = p.IDs, p.Pictures, p.Special, p.Reader
		r.Format.After = p.Thinking
	default:
		var text string
		if text, r.Pictures, err = b.model.Processor().ShowPictures(q.prompt.text, q.pictures); err == nil {
			r.Prompt, err = b.model.Processor().Encode(ctx, text)
		}
	}
	return r, reader, err
}

// orRaw suggests --raw if the template failed.
func orRaw(err error) error {
	if errors.Is(err, jinja.ErrRender) || errors.Is(err, jinja.ErrLimit) {
		return fmt.Errorf("%w; use --raw to skip the template", err)
	}
	return err
}

// conversation returns the input of the chat template.
func (q modelRequest) conversation(style *prompt.Style) (prompt.Conversation, error) {
	c := prompt.Conversation{Pictures: q.pictures}
	now, err := cli.Clock("")
	if err != nil {
		return c, err
	}
	c.Request = chat.Request{AddGenerationPrompt: true, Options: jinja.Options{Now: now}}
	c.Messages = style.WithImageMessages(
		append([]chat.Message{{Role: "system", Content: q.system}}, q.turns...))
	if q.think != "" {
		think := q.think != "off"
		c.Think = &think
		if slices.Contains(thinkLevels, q.think) {
			c.ThinkLevel = q.think
		}
	}
	return c, nil
}

// backends opens the backends of a run, one at a time.
type backends struct {
	*cli.App
	o       runOptions
	store   *store.Store
	request func(runtime.Defaults) runtime.Request
	local   bool // do not use a server
	prefix  bool // enable the prefix cache
	thread  *mlx.Thread
}

func newBackends(a *cli.App, c *cobra.Command, store *store.Store, o runOptions) *backends {
	return &backends{App: a, o: o, store: store, local: o.inProcess(c), request: o.request}
}

// open uses a server that has the model, or loads the model in this process.
func (b *backends) open(ctx context.Context, entry *store.Entry, style *prompt.Style) (backend, error) {
	if !b.local {
		if s, err := b.findServer(ctx, entry, style); s != nil || err != nil {
			return s, err
		}
	}
	kv, err := b.o.kv.Value()
	if err != nil {
		return nil, err
	}
	// The tokenizer's files are read while the engine starts.
	read := sync.OnceValues(func() (*processor.Processor, error) {
		p, err := processor.Files{Store: b.store, Image: entry.Image}.Processor()
		if err == nil {
			err = p.CheckHead()
		}
		return p, err
	})
	go read()
	var load stopwatch
	load.begin("engine")
	if b.thread == nil {
		if b.thread, err = engines.Open(ctx, b.App, b.o.cpu); err != nil {
			return nil, err
		}
	}
	draft, err := runtime.ParseDraft(b.o.draft)
	if err != nil {
		return nil, err
	}
	options := runtime.Options{
		Float32: b.o.float32,
		KV:      kv,
		Draft:   runtime.DraftOptions{Off: draft.Mode == runtime.DraftOff},
		Phase:   load.begin,
	}
	if b.prefix {
		options.PrefixCache = -1 // as large as memory allows
	}
	model, err := batch.OpenWith(ctx, b.thread, b.store, entry, read, options)
	if err != nil {
		return nil, err
	}
	if load.end(); b.o.verbose {
		b.Note("load: %s", &load)
	}
	return &localBackend{model, style, b.request}, nil
}

func (b *backends) close() {
	if b.thread != nil {
		b.thread.Close()
	}
}
