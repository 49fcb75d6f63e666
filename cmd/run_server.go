package cmd

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
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/identity"
	"github.com/ingotml/ingot/server/talk"
	"github.com/spf13/cobra"
)

// inProcess tells whether a flag asks for what a server does not do: to compute in another way than it does, or for ids.
func (o runOptions) inProcess(c *cobra.Command) bool {
	for _, name := range []string{"local", "float32", "prompt-ids", "cpu-math", "threads", "kv-type"} {
		if c.Flags().Changed(name) {
			return true
		}
	}
	return false
}

// errServerGone says that a server has stopped in the middle of an answer.
var errServerGone = errors.New("the server is gone")

// serverPatience is how long a server may take to say what it is.
const serverPatience = 2 * time.Second

// findServer gives the server at INGOT_HOST, if there is one that proves that it is the user's and serves the store;
// else nil. What is there and does not gets nothing, and a note tells the user. The error is that of a key's file.
func (v *voices) findServer(ctx context.Context, entry *manifest.Entry, style *talk.Style) (voice, error) {
	key, err := v.o.key.read(v.app)
	if err != nil {
		return nil, err
	}
	brief, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	client, err := v.storeClient(v.store, key)
	if err == nil {
		var version server.VersionJSON
		err = client.get(brief, http.MethodGet, "/api/version", nil, &version)
	}
	switch {
	case errors.Is(err, errNoServer):
		return nil, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		v.note("note: the model runs in this process, as with --local: %v", err)
		return nil, nil
	}
	if v.o.verbose {
		v.note("asking the server at %s; --local does not", client.at.URL())
	}
	return &serverVoice{client, entry.Name.String(), style}, nil
}

// serverVoice is a model that a server has.
type serverVoice struct {
	client serverClient
	model  string
	style  *talk.Style
}

func (v *serverVoice) close() {}

func (v *serverVoice) idsOnly() bool { return false }

// serverQuestion is the body of /api/chat, or with a prompt of /api/generate.
type serverQuestion struct {
	Model    string          `json:"model"`
	Messages []serverTurn    `json:"messages,omitempty"`
	Prompt   string          `json:"prompt,omitempty"`
	Raw      bool            `json:"raw,omitempty"`
	Images   [][]byte        `json:"images,omitempty"`
	Think    any             `json:"think,omitempty"`
	Format   json.RawMessage `json:"format,omitempty"`
	Options  map[string]any  `json:"options,omitempty"`
	IDs      bool            `json:"ids,omitempty"`
}

type serverTurn struct {
	Role     string       `json:"role"`
	Content  string       `json:"content"`
	Thinking string       `json:"thinking,omitempty"`
	Calls    []serverCall `json:"tool_calls,omitempty"`
	Images   [][]byte     `json:"images,omitempty"`
}

// serverCalls are those of a message.
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

// serverLine is a line of the answer of either.
type serverLine struct {
	Message  serverTurn    `json:"message"`
	Response string        `json:"response"`
	IDs      []int32       `json:"ids"`
	Done     bool          `json:"done"`
	Reason   string        `json:"done_reason"`
	Stats    *server.Stats `json:"stats"`
	Error    string        `json:"error"`
}

// body gives the question to a server, and where it goes.
func (v *serverVoice) body(q question) (path string, body serverQuestion, err error) {
	body = serverQuestion{Model: v.model, Options: map[string]any{}, IDs: q.wantIDs}
	if q.format.Kind != "" {
		body.Format = q.format.Value()
	}
	for name, value := range q.parameters {
		body.Options[name] = value
	}
	if q.ignoreEOS {
		body.Options["ignore_eos"] = true
	}
	if q.draft != "" && q.draft != "auto" {
		body.Options["draft"] = q.draft
	}
	if q.turns == nil {
		body.Prompt, body.Raw = q.prompt.text, true
		for _, p := range q.pictures {
			body.Images = append(body.Images, p.Data)
		}
		return "/api/generate", body, nil
	}
	switch q.think {
	case "":
	case "on", "off":
		body.Think = q.think == "on"
	default:
		body.Think = q.think
	}
	if q.system != v.style.Texts.System { // an empty one is none
		body.Messages = append(body.Messages, serverTurn{Role: "system", Content: q.system})
	}
	rest := q.pictures
	for _, m := range q.turns {
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
				return "", body, fmt.Errorf("calls of tools: %w", err)
			}
		}
		body.Messages = append(body.Messages, turn)
	}
	return "/api/chat", body, nil
}

func (v *serverVoice) answer(ctx context.Context, q question) iter.Seq2[said, error] {
	return func(yield func(said, error) bool) {
		path, body, err := v.body(q)
		if err != nil {
			yield(said{}, err)
			return
		}
		answer, err := v.client.do(ctx, http.MethodPost, path, body)
		if errors.Is(err, errNoServer) {
			err = fmt.Errorf("%w: nothing listens at %s any more", errServerGone, v.client.at.URL())
		}
		if errors.Is(err, identity.ErrUnproven) {
			err = fmt.Errorf("%w: another one is there: %w", errServerGone, err)
		}
		if err != nil {
			yield(said{}, err)
			return
		}
		defer answer.Body.Close()
		lines := json.NewDecoder(bufio.NewReader(answer.Body))
		for {
			var line serverLine
			err := lines.Decode(&line)
			switch {
			case err != nil && ctx.Err() != nil:
				err = ctx.Err()
			case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
				err = fmt.Errorf("%w: %s ended in the middle of the answer", errServerGone, v.client.at.URL())
			case err != nil:
				err = fmt.Errorf("%w: %s in the middle of the answer: %w", errServerGone, v.client.at.URL(), err)
			case line.Error != "":
				err = fmt.Errorf("%s: %s", v.client.at.URL(), line.Error)
			}
			if !yield(line.said(), err) || err != nil || line.Done {
				return
			}
		}
	}
}

// said is a line as a piece of an answer.
func (l serverLine) said() said {
	s := said{ids: l.IDs}
	for _, piece := range []parse.Event{{Kind: parse.Thinking, Text: l.Message.Thinking}, {Kind: parse.Content, Text: l.Message.Content + l.Response}} {
		if piece.Text != "" {
			s.events = append(s.events, piece)
		}
	}
	for _, c := range l.Message.Calls {
		s.events = append(s.events, parse.Event{Kind: parse.Call, Call: parse.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments}})
	}
	if l.Stats != nil {
		s.stats = *l.Stats
	}
	if l.Done {
		s.done = l.Reason
	}
	return s
}
