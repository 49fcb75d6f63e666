package run

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/cmd/cli/servers"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/identity"
	"github.com/ingotml/ingot/server/ollama"
	"github.com/spf13/cobra"
)

// inProcess reports whether a flag requires the model in this process: flags of computation and of token ids do.
func (o runOptions) inProcess(c *cobra.Command) bool {
	for _, name := range []string{"local", "float32", "prompt-ids", "cpu-math", "threads", "kv-type"} {
		if c.Flags().Changed(name) {
			return true
		}
	}
	return false
}

// errServerGone means that a server stopped in the middle of a response.
var errServerGone = errors.New("the server is gone")

// identifyTimeout is the timeout for identifying the server.
const identifyTimeout = 2 * time.Second

// findServer returns a backend for the server at INGOT_HOST, or nil. The server must prove that it belongs to the user
// and serves the store; otherwise it receives nothing and a note says so. The only other error is that of the key file.
func (b *backends) findServer(ctx context.Context, entry *store.Entry, style *prompt.Style) (backend, error) {
	key, err := b.o.key.Read(b.App)
	if err != nil {
		return nil, err
	}
	brief, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	client, err := servers.ForStore(b.App, b.store, key)
	if err == nil {
		var version ollama.VersionJSON
		err = client.Get(brief, http.MethodGet, "/api/version", nil, &version)
	}
	switch {
	case errors.Is(err, servers.ErrNoServer):
		return nil, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		b.Note("note: the model runs in this process, as with --local: %v", err)
		return nil, nil
	}
	if b.o.verbose {
		b.Note("using the server at %s; to use none, pass --local", client.At.URL())
	}
	return &serverBackend{client, entry.Name.String(), style}, nil
}

// serverBackend runs a model on a server.
type serverBackend struct {
	client servers.Client
	model  string
	style  *prompt.Style
}

func (b *serverBackend) close() {}

func (b *serverBackend) idsOnly() bool { return false }

// serverRequest is the body of /api/chat, or of /api/generate if it has a prompt.
type serverRequest struct {
	Model    string          `json:"model"`
	Messages []serverTurn    `json:"messages,omitempty"`
	Prompt   string          `json:"prompt,omitempty"`
	Raw      bool            `json:"raw,omitempty"`
	Images   [][]byte        `json:"images,omitempty"`
	Think    any             `json:"think,omitempty"`
	Format   json.RawMessage `json:"format,omitempty"`
	Options  map[string]any  `json:"options,omitempty"`
	IDs      bool            `json:"ids,omitempty"`

	StrictSchema bool `json:"strict_schema,omitempty"`
	BestEffort   bool `json:"best_effort,omitempty"`

	// As without a server, a prompt that does not fit is an error, and a full context ends the response.
	Truncate bool `json:"truncate"`
	Shift    bool `json:"shift"`
}

type serverTurn struct {
	Role     string       `json:"role"`
	Content  string       `json:"content"`
	Thinking string       `json:"thinking,omitempty"`
	Calls    []serverCall `json:"tool_calls,omitempty"`
	Images   [][]byte     `json:"images,omitempty"`
}

// serverCalls are the tool calls of a message.
type serverCalls struct {
	Calls *[]serverCall `json:"tool_calls"`
}

type serverCall struct {
	ID       string `json:"id,omitempty"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// serverLine is a line of the response of /api/chat or /api/generate.
type serverLine struct {
	Message  serverTurn    `json:"message"`
	Response string        `json:"response"`
	IDs      []int32       `json:"ids"`
	Done     bool          `json:"done"`
	Reason   string        `json:"done_reason"`
	Stats    *server.Stats `json:"stats"`
	LeftOut  []string      `json:"left_out"`
	Error    string        `json:"error"`
}

// body converts a request to an API path and body.
func (b *serverBackend) body(r modelRequest) (path string, body serverRequest, err error) {
	body = serverRequest{Model: b.model, Options: map[string]any{}, IDs: r.wantIDs}
	if r.format.Kind != "" {
		body.Format = r.format.Value()
		body.StrictSchema, body.BestEffort = r.format.StrictSchema, r.format.BestEffort
	}
	for name, value := range r.parameters {
		body.Options[name] = value
	}
	if r.ignoreEOS {
		body.Options["ignore_eos"] = true
	}
	if r.draft != "" && r.draft != "auto" {
		body.Options["draft"] = r.draft
	}
	if r.turns == nil {
		body.Prompt, body.Raw = r.prompt.text, true
		for _, p := range r.pictures {
			body.Images = append(body.Images, p.Data)
		}
		return "/api/generate", body, nil
	}
	switch r.think {
	case "":
	case "on", "off":
		body.Think = r.think == "on"
	default:
		body.Think = r.think
	}
	if r.system != b.style.Texts.System { // an empty system message removes the image's
		body.Messages = append(body.Messages, serverTurn{Role: "system", Content: r.system})
	}
	rest := r.pictures
	for _, m := range r.turns {
		turn := serverTurn{Role: m.Role, Content: m.Content, Thinking: m.Reasoning}
		for _, p := range m.Parts {
			if p.Type == "image" && len(rest) > 0 {
				turn.Images = append(turn.Images, rest[0].Data)
				rest = rest[1:]
			}
		}
		if len(m.ToolCalls) > 0 {
			text, err := m.MarshalJSON()
			if err == nil {
				err = json.Unmarshal(text, &serverCalls{&turn.Calls})
			}
			if err != nil {
				return "", body, fmt.Errorf("tool calls: %w", err)
			}
		}
		body.Messages = append(body.Messages, turn)
	}
	return "/api/chat", body, nil
}

func (b *serverBackend) generate(ctx context.Context, r modelRequest) iter.Seq2[responsePart, error] {
	return func(yield func(responsePart, error) bool) {
		path, body, err := b.body(r)
		if err != nil {
			yield(responsePart{}, err)
			return
		}
		response, err := b.client.Do(ctx, http.MethodPost, path, body)
		if errors.Is(err, servers.ErrNoServer) {
			err = fmt.Errorf("%w: nothing listens at %s any more", errServerGone, b.client.At.URL())
		}
		if errors.Is(err, identity.ErrUnproven) {
			err = fmt.Errorf("%w: another server uses its address: %w", errServerGone, err)
		}
		if err != nil {
			yield(responsePart{}, err)
			return
		}
		defer response.Body.Close()
		lines := json.NewDecoder(bufio.NewReader(response.Body))
		for {
			var line serverLine
			err := lines.Decode(&line)
			switch {
			case err != nil && ctx.Err() != nil:
				err = ctx.Err()
			case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
				err = fmt.Errorf("%w: %s stopped in the middle of the response", errServerGone, b.client.At.URL())
			case err != nil:
				err = fmt.Errorf("%w: %s in the middle of the response: %w", errServerGone, b.client.At.URL(), err)
			case line.Error != "":
				err = fmt.Errorf("%s: %s", b.client.At.URL(), line.Error)
			}
			if !yield(line.part(), err) || err != nil || line.Done {
				return
			}
		}
	}
}

// part converts a line to a part of the response.
func (l serverLine) part() responsePart {
	p := responsePart{ids: l.IDs}
	for _, e := range []parse.Event{
		{Kind: parse.Thinking, Text: l.Message.Thinking},
		{Kind: parse.Content, Text: l.Message.Content + l.Response},
	} {
		if e.Text != "" {
			p.events = append(p.events, e)
		}
	}
	for _, c := range l.Message.Calls {
		call := parse.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments}
		p.events = append(p.events, parse.Event{Kind: parse.Call, Call: call})
	}
	if l.Stats != nil {
		p.stats = *l.Stats
	}
	if l.Done {
		p.done, p.leftOut = l.Reason, l.LeftOut
	}
	return p
}
