package anthropic

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/chat/prompt"
	"github.com/ingotml/ingot/limits/jsonfit"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// conversation returns the template's input.
func (q *messagesRequest) conversation(style *prompt.Style) (prompt.Conversation, error) {
	var c prompt.Conversation
	if len(q.Messages) == 0 {
		return c, wire.BadParam("messages", "at least one message is required")
	}
	q.think(&c.Request)
	c.Continue = true
	var err error
	if c.Tools, err = q.tools(); err != nil {
		return c, err
	}
	b := conversationBuilder{names: map[string]string{}}
	if err := b.system(q.System); err != nil {
		return c, err
	}
	for _, t := range q.turns() {
		if err := b.turn(t); err != nil {
			return c, err
		}
	}
	c.Messages, c.Pictures = style.WithImageMessages(b.messages), b.pictures
	return c, nil
}

// turns merges consecutive messages of the same role.
func (q *messagesRequest) turns() (list []turn) {
	for i, m := range q.Messages {
		if n := len(list); n > 0 && list[n-1].Role == m.Role {
			list[n-1].Content = append(list[n-1].Content, m.Content...)
			continue
		}
		list = append(list, turn{messageParam{m.Role, slices.Clone(m.Content)}, i})
	}
	return list
}

// turn is a message after merging.
type turn struct {
	messageParam
	at int // index of the first merged message
}

// joined returns the text of the text blocks. Each block starts on a new line.
func joined(list []contentBlock) string {
	var text strings.Builder
	for _, b := range list {
		if b.Type == textBlock {
			addText(&text, b.Text)
		}
	}
	return text.String()
}

func addText(to *strings.Builder, text string) {
	if s := to.String(); s != "" && text != "" && !strings.HasSuffix(s, "\n") {
		to.WriteByte('\n')
	}
	to.WriteString(text)
}

// think sets whether the model thinks. The default is no.
func (q *messagesRequest) think(r *chat.Request) {
	t := q.Thinking.Thinking
	if q.Thinking.betweenTools {
		last := q.Messages[len(q.Messages)-1].Content
		t.On = new(slices.ContainsFunc(last, func(b contentBlock) bool { return b.Type == toolResultBlock }))
	}
	if t.On == nil {
		t.On = new(false)
	}
	effort := q.Output.Effort
	effort.On = nil // says how much, not whether
	t.Or(effort).Set(r)
}

// tools returns the request's tools in the form of templates. It returns none if tool_choice is none.
func (q *messagesRequest) tools() ([]chat.Tool, error) {
	var list []chat.Tool
	for i, t := range q.Tools {
		at := fmt.Sprintf("tools.%d", i)
		switch {
		case t.Type != "" && t.Type != "custom":
			return nil, wire.BadParam(at, "%q is a tool that Anthropic runs, which is not supported: "+
				"send tools with a name and an input_schema, which the client runs", wire.Clip(t.Type))
		case t.Name == "":
			return nil, wire.BadParam(at+".name", "missing")
		}
		tool, err := chat.NewTool(t.Name, t.Description, t.InputSchema)
		if err != nil {
			return nil, wire.BadParam(at+".input_schema", "must be a JSON schema of an object: %v", err)
		}
		list = append(list, tool)
	}
	if q.ToolChoice.Type == "none" {
		return nil, nil
	}
	return list, nil
}

// toolUse returns how the response may call the tools.
func (q *messagesRequest) toolUse() (u server.ToolUse, err error) {
	named := false
	for _, t := range q.Tools {
		named = named || t.Name == q.ToolChoice.Name
		if q.ToolChoice.Type != "tool" || t.Name == q.ToolChoice.Name {
			u.Offers = append(u.Offers,
				parse.Offer{Tool: parse.Tool{Name: t.Name, Parameters: t.InputSchema}, Strict: t.Strict})
		}
	}
	u.Single = q.ToolChoice.One
	switch q.ToolChoice.Type {
	case "", "auto":
	case "none":
		return server.ToolUse{}, nil
	case "tool":
		if !named {
			return u, wire.BadParam("tool_choice.name", "no tool is named %q", wire.Clip(q.ToolChoice.Name))
		}
		u.Required, u.Single = true, true
	case "any":
		if len(q.Tools) == 0 {
			return u, wire.BadParam("tool_choice", "the request has no tools")
		}
		u.Required = true
	default:
		return u, wire.BadParam("tool_choice.type", "%q is not auto, any, tool or none", wire.Clip(q.ToolChoice.Type))
	}
	return u, nil
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

// conversationBuilder converts turns to messages.
type conversationBuilder struct {
	messages []chat.Message
	pictures []runtime.Picture
	names    map[string]string // names of called tools, by call id
}

// billing starts a block that Claude Code adds to the system prompt. It differs in each request, so no prompt would hit
// the prefix cache.
const billing = "x-anthropic-billing-header:"

func (b *conversationBuilder) system(list []contentBlock) error {
	var kept []contentBlock
	for i, s := range list {
		if s.Type != textBlock {
			return wire.BadParam(fmt.Sprintf("system.%d", i), "block type %q is not supported: use text", wire.Clip(s.Type))
		}
		if !strings.HasPrefix(s.Text, billing) {
			kept = append(kept, s)
		}
	}
	if text := joined(kept); text != "" {
		b.messages = append(b.messages, chat.Message{Role: "system", Content: text})
	}
	return nil
}

// turn adds the messages of a turn.
func (b *conversationBuilder) turn(t turn) error {
	at := fmt.Sprintf("messages.%d", t.at)
	switch t.Role {
	case chat.Assistant:
		return b.assistant(at, t.Content)
	case "user", "system":
		return b.user(at, t.Role, t.Content)
	}
	return wire.BadParam(at+".role", "%q is not user, assistant or system", wire.Clip(t.Role))
}

// assistant adds a message of the model.
func (b *conversationBuilder) assistant(at string, list []contentBlock) error {
	m := chat.Message{Role: chat.Assistant, Content: joined(list), At: at}
	var thought strings.Builder
	for i, x := range list {
		switch x.Type {
		case textBlock, redactedBlock:
		case thinkingBlock:
			addText(&thought, x.Thinking)
		case toolUseBlock:
			input, err := jinja.DecodeVars(x.Input)
			if err != nil {
				return wire.BadParam(fmt.Sprintf("%s.content.%d.input", at, i), "must be an object: %v", err)
			}
			if x.Name == "" {
				return wire.BadParam(fmt.Sprintf("%s.content.%d.name", at, i), "missing")
			}
			b.names[x.ID] = x.Name
			m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: x.ID, Name: x.Name, Arguments: input})
		default:
			return refuseBlock(at, i, x)
		}
	}
	m.Reasoning = thought.String()
	b.messages = append(b.messages, m)
	return nil
}

// user adds a message of the user and tool results, in order. Each result becomes a message.
func (b *conversationBuilder) user(at, role string, list []contentBlock) error {
	content := &contents{}
	flush := func() {
		if !content.empty() {
			b.messages = append(b.messages, content.message(chat.Message{Role: role, At: at}))
		}
		content = &contents{}
	}
	for i, x := range list {
		if x.Type != toolResultBlock {
			if err := b.content(content, at, i, x); err != nil {
				return err
			}
			continue
		}
		flush()
		if err := b.result(fmt.Sprintf("%s.content.%d", at, i), x); err != nil {
			return err
		}
	}
	flush()
	return nil
}

// result adds a tool result.
func (b *conversationBuilder) result(at string, x contentBlock) error {
	name, called := b.names[x.ToolUseID]
	if !called {
		return wire.BadParam(at+".tool_use_id", "no earlier tool_use has the id %q", wire.Clip(x.ToolUseID))
	}
	var list contentBlocks
	if len(x.Content) > 0 {
		if err := jsonfit.Unmarshal(x.Content, &list); err != nil {
			return wire.BadJSON(jsonfit.In(err, at+".content"))
		}
	}
	var content contents
	for i, y := range list {
		if err := b.content(&content, at, i, y); err != nil {
			return err
		}
	}
	if content.empty() && x.IsError {
		content.text("error")
	}
	b.messages = append(b.messages, content.message(chat.Message{Role: "tool", ToolCallID: x.ToolUseID, Name: name}))
	return nil
}

// content adds a text, document or image block.
func (b *conversationBuilder) content(to *contents, at string, i int, x contentBlock) error {
	switch {
	case x.Type == textBlock:
		to.text(x.Text)
	case x.Type == documentBlock && x.Source != nil && x.Source.Type == "text":
		to.text(x.Source.Data)
	case x.Type == imageBlock && x.Source != nil && x.Source.Type == "base64":
		p, err := server.DecodePicture(x.Source.Data, len(b.pictures))
		if err != nil {
			return err
		}
		b.pictures = append(b.pictures, p)
		to.picture()
	default:
		return refuseBlock(at, i, x)
	}
	return nil
}

// refuseBlock returns the error for an unsupported block.
func refuseBlock(at string, i int, x contentBlock) error {
	at = fmt.Sprintf("%s.content.%d", at, i)
	switch {
	case x.Type != imageBlock && x.Type != documentBlock:
		return wire.BadParam(at+".type", "block type %q is not supported here", wire.Clip(x.Type))
	case x.Source == nil:
		return wire.BadParam(at+".source", "missing")
	case x.Type == imageBlock:
		return wire.BadParam(at+".source", "image source %q is not supported: use base64", wire.Clip(x.Source.Type))
	}
	return wire.BadParam(at+".source", "document source %q is not supported: use text", wire.Clip(x.Source.Type))
}

// contents collects texts and pictures in order.
type contents struct {
	parts    []chat.Part
	last     strings.Builder // text since the last part; each block starts on a new line
	texts    int             // number of blocks in last
	pictures int
}

func (c *contents) empty() bool { return len(c.parts) == 0 && c.texts == 0 }

func (c *contents) text(text string) {
	addText(&c.last, text)
	c.texts++
}

func (c *contents) picture() {
	c.flush()
	c.parts = append(c.parts, chat.Part{Type: "image"})
	c.pictures++
}

func (c *contents) flush() {
	if c.texts > 0 {
		c.parts = append(c.parts, chat.Part{Type: "text", Text: c.last.String()})
		c.last.Reset()
		c.texts = 0
	}
}

// message adds the content to a message. It uses parts only if there are pictures, since not every template supports
// parts.
func (c *contents) message(m chat.Message) chat.Message {
	c.flush()
	for _, p := range c.parts {
		m.Content += p.Text
	}
	if c.pictures > 0 {
		m.Parts = c.parts
	}
	return m
}
