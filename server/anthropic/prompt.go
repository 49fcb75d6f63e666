package anthropic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// reader reads what a model can be shown beside text.
type reader struct {
	// note returns what stands for a picture that the model cannot see, "" if it can. It returns an error for one in the
	// newest message.
	note func(newest bool) (string, error)
	// check returns an error if a picture cannot be read.
	check func(runtime.Picture) error
	// pdf returns the text of a PDF file. The error is ErrBusy, that of the context, or about the file.
	pdf func(data []byte) (string, error)
}

// newReader returns the reader of a request to a model.
func (s *api) newReader(ctx context.Context, m *server.Model) reader {
	return reader{m.PictureNote, m.CheckPicture, s.core.PDFReader(ctx)}
}

// fails reports whether an error is about the server rather than about what it reads.
func fails(err error) bool {
	return errors.Is(err, runtime.ErrBusy) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// conversation returns the template's input, and the tools that the model is offered.
func (q *messagesRequest) conversation(style *prompt.Style, r reader) (c prompt.Conversation, o offers, err error) {
	if err := q.unsupported(); err != nil {
		return c, o, err
	}
	if len(q.Messages) == 0 {
		return c, o, wire.BadParam("messages", "at least one message is required")
	}
	q.think(&c.Request)
	c.Continue = true
	b, err := q.build(r)
	if err != nil {
		return c, o, err
	}
	if o, err = q.offers(b.changes); err != nil {
		return c, o, err
	}
	if q.ToolChoice.Type != "none" {
		c.Tools = o.tools()
	}
	c.Messages, c.Pictures = style.WithImageMessages(b.messages), b.pictures
	return c, o, nil
}

// build converts the system prompt and the messages.
func (q *messagesRequest) build(r reader) (*builder, error) {
	b := &builder{reader: r, names: map[string]string{}, tools: map[string]bool{}}
	for _, t := range q.Tools {
		b.tools[t.nameOf()] = true
	}
	if err := b.system(q.System); err != nil {
		return b, err
	}
	for _, t := range q.turns() {
		if err := b.turn(t); err != nil {
			return b, err
		}
	}
	return b, nil
}

// turn is a message of the conversation: consecutive messages of the same role.
type turn struct {
	role   string
	at     string // path of the first of these messages
	blocks []placed
}

// placed is a block and where it is.
type placed struct {
	contentBlock
	place
}

// place is where a block is.
type place struct {
	at    string // path
	own   bool   // in the newest message of the user, and no part of a tool's result or beside one
	depth int    // blocks around it
}

// within returns the place of a block within another one. The user did not write what a tool returned.
func (p place) within(i int, own bool) place {
	return place{fmt.Sprintf("%s.content.%d", p.at, i), p.own && own, p.depth + 1}
}

// turns merges consecutive messages of the same role.
func (q *messagesRequest) turns() (list []turn) {
	newest := q.newestOfUser()
	for i, m := range q.Messages {
		at := fmt.Sprintf("messages.%d", i)
		if n := len(list); n == 0 || list[n-1].role != m.Role {
			list = append(list, turn{role: m.Role, at: at})
		}
		last := &list[len(list)-1]
		// Coding clients put the files that a tool has read beside its result.
		own := i == newest && m.Role == "user" && !slices.ContainsFunc(m.Content, isResult)
		for k, b := range m.Content {
			p := place{at: fmt.Sprintf("%s.content.%d", at, k), own: own}
			last.blocks = append(last.blocks, placed{b, p})
		}
	}
	return list
}

// newestOfUser returns the index of the user's newest message.
func (q *messagesRequest) newestOfUser() (newest int) {
	if q.newest != nil {
		return *q.newest
	}
	for i, m := range q.Messages {
		if m.Role == "user" {
			newest = i
		}
	}
	return newest
}

func addText(to *strings.Builder, text string) {
	if s := to.String(); s != "" && text != "" && !strings.HasSuffix(s, "\n") {
		to.WriteByte('\n')
	}
	to.WriteString(text)
}

func isResult(b contentBlock) bool { return b.Type == toolResultBlock }

// think sets whether the model thinks. The default is no.
func (q *messagesRequest) think(r *chat.Request) {
	t := q.Thinking.Thinking
	if q.Thinking.betweenTools {
		last := q.Messages[len(q.Messages)-1].Content
		t.On = new(slices.ContainsFunc(last, isResult))
	}
	if t.On == nil {
		t.On = new(false)
	}
	effort := q.Output.Effort
	effort.On = nil // says how much, not whether
	t.Or(effort).Set(r)
}

// format returns the format of a response without calls. output_config.format takes precedence over output_format.
func (q *messagesRequest) format() (f params.Format, err error) {
	for _, o := range []struct {
		name string
		*outputFormat
	}{{"output_format", q.OutputFormat}, {"output_config.format", q.Output.Format}} {
		switch {
		case o.outputFormat == nil:
		case o.Type != "json_schema" || len(o.Schema) == 0:
			return f, wire.BadParam(o.name, "must have the type json_schema and a schema")
		default:
			f.Kind, f.Source = runtime.FormatSchema, string(o.Schema)
		}
	}
	return f, nil
}

// unsupported refuses fields that would change the response in a way that is not implemented.
func (q *messagesRequest) unsupported() error {
	for _, f := range []struct {
		name, why string
		value     []byte
	}{
		{"mcp_servers", "the server connects to no MCP servers: connect to them in the client, and send their tools as tools",
			q.MCPServers},
		{"thread", "conversations are not stored: send all messages", q.Thread},
		{"compaction", "is not supported: ask for a summary with a message", q.Compaction},
	} {
		switch string(f.value) {
		case "", "null", "[]", "{}":
		default:
			return wire.BadParam(f.name, "%s", f.why)
		}
	}
	return nil
}
