package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/talk"
)

// conversation is what the template gets.
func (q *messagesRequest) conversation(style *talk.Style) (talk.Conversation, error) {
	var c talk.Conversation
	if len(q.Messages) == 0 {
		return c, badParam("messages", "there has to be one at least")
	}
	if err := q.think(style, &c.Request); err != nil {
		return c, err
	}
	var err error
	if c.Tools, err = q.tools(); err != nil {
		return c, err
	}
	b := conversationBuilder{names: map[string]string{}}
	if err := b.system(q.System); err != nil {
		return c, err
	}
	turns := q.turns()
	for i, t := range turns {
		if style.Template != nil && i == len(turns)-1 && t.Role == assistant && t.onlyText() {
			c.Answer = joined(t.Content)
			continue
		}
		if err := b.turn(t); err != nil {
			return c, err
		}
	}
	c.Messages, c.Pictures = opening(style, b.messages), b.pictures
	return c, nil
}

// turns joins what comes from one side in several messages.
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

// turn is what one side says at a time.
type turn struct {
	messageParam
	at int // the first of its messages
}

func (t turn) onlyText() bool {
	return !slices.ContainsFunc(t.Content, func(b contentBlock) bool {
		return b.Type != textBlock && b.Type != thinkingBlock && b.Type != redactedBlock
	})
}

// joined is the text of blocks, each of which begins a line.
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

// think says whether the model is to think: it is not unless the request says so.
func (q *messagesRequest) think(style *talk.Style, r *chat.Request) error {
	on := false
	if t := q.Thinking; t != nil {
		switch t.Type {
		case "enabled":
			if t.Budget != nil && *t.Budget < 1 {
				return badParam("thinking.budget_tokens", "it is %d", *t.Budget)
			}
			on = true
		case "adaptive":
			on = true
		case "between_tools":
			last := q.Messages[len(q.Messages)-1].Content
			on = slices.ContainsFunc(last, func(b contentBlock) bool { return b.Type == toolResultBlock })
		case "disabled":
		default:
			return badParam("thinking.type", "%q is none of enabled, adaptive, between_tools and disabled", clip(t.Type))
		}
	}
	if on || style.Template != nil {
		r.Think = &on
	}
	switch e := q.Output.Effort; e {
	case "low", "medium", "high":
		r.ThinkLevel = e
	case "xhigh", "max":
		r.ThinkLevel = "high"
	case "":
	default:
		return badParam("output_config.effort", "%q is none of low, medium, high, xhigh and max", clip(e))
	}
	return nil
}

// tools are those of the request as templates want them. Where none is to be called, there are none.
func (q *messagesRequest) tools() ([]chat.Tool, error) {
	var list []chat.Tool
	for i, t := range q.Tools {
		at := fmt.Sprintf("tools.%d", i)
		switch {
		case t.Type != "" && t.Type != "custom":
			return nil, badParam(at, "%q is a tool of Anthropic's; here a tool has a name and an input_schema, and the client runs it", clip(t.Type))
		case t.Name == "":
			return nil, badParam(at+".name", "it is missing")
		}
		schema, err := jinja.DecodeVars(t.InputSchema)
		if err != nil {
			return nil, badParam(at+".input_schema", "want a JSON schema of an object: %v", err)
		}
		fn, tool := jinja.NewDict(), jinja.NewDict()
		_ = fn.Set("name", t.Name)
		if t.Description != "" {
			_ = fn.Set("description", t.Description)
		}
		_ = fn.Set("parameters", schema)
		_ = tool.Set("type", "function")
		_ = tool.Set("function", fn)
		list = append(list, chat.Tool{Value: tool})
	}
	if q.ToolChoice.Type == "none" {
		return nil, nil
	}
	return list, nil
}

// toolUse is how the answer may call them.
func (q *messagesRequest) toolUse() (u toolUse, err error) {
	named := false
	for _, t := range q.Tools {
		named = named || t.Name == q.ToolChoice.Name
		if q.ToolChoice.Type != "tool" || t.Name == q.ToolChoice.Name {
			u.offers = append(u.offers, parse.Offer{Tool: parse.Tool{Name: t.Name, Parameters: t.InputSchema}, Strict: t.Strict})
		}
	}
	u.once = q.ToolChoice.One
	switch q.ToolChoice.Type {
	case "", "auto":
	case "none":
		return toolUse{}, nil
	case "tool":
		if !named {
			return u, badParam("tool_choice.name", "there is no tool %q", clip(q.ToolChoice.Name))
		}
		u.must, u.once = true, true
	case "any":
		if len(q.Tools) == 0 {
			return u, badParam("tool_choice", "there is no tool to call")
		}
		u.must = true
	default:
		return u, badParam("tool_choice.type", "%q is none of auto, any, tool and none", clip(q.ToolChoice.Type))
	}
	return u, nil
}

// format is what the answer has to look like where it is no call. Of two formats output_config's wins.
func (q *messagesRequest) format() (f format, err error) {
	for _, o := range []struct {
		name string
		*outputFormat
	}{{"output_format", q.OutputFormat}, {"output_config.format", q.Output.Format}} {
		switch {
		case o.outputFormat == nil:
		case o.Type != "json_schema" || len(o.Schema) == 0:
			return f, badParam(o.name, "want the type json_schema and a schema")
		default:
			f.Kind, f.Source = runtime.FormatSchema, string(o.Schema)
		}
	}
	return f, nil
}

// conversationBuilder makes messages of turns.
type conversationBuilder struct {
	messages []chat.Message
	pictures []runtime.Picture
	names    map[string]string // of the tools that were called, by the ids of the calls
}

// billing begins a block of a client's system text that changes with each request and is for Anthropic alone: with it nothing of a
// prompt would be found again.
const billing = "x-anthropic-billing-header:"

func (b *conversationBuilder) system(list []contentBlock) error {
	var kept []contentBlock
	for i, s := range list {
		if s.Type != textBlock {
			return badParam(fmt.Sprintf("system.%d", i), "a block of type %q; the system text is text", clip(s.Type))
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
	case assistant:
		return b.assistant(at, t.Content)
	case "user", "system":
		return b.user(at, t.Role, t.Content)
	}
	return badParam(at+".role", "%q is none of user, assistant and system", clip(t.Role))
}

// assistant adds what the model said.
func (b *conversationBuilder) assistant(at string, list []contentBlock) error {
	m := chat.Message{Role: assistant, Content: joined(list)}
	var thought strings.Builder
	for i, x := range list {
		switch x.Type {
		case textBlock, redactedBlock:
		case thinkingBlock:
			addText(&thought, x.Thinking)
		case toolUseBlock:
			input, err := jinja.DecodeVars(x.Input)
			if err != nil {
				return badParam(fmt.Sprintf("%s.content.%d.input", at, i), "want an object: %v", err)
			}
			if x.Name == "" {
				return badParam(fmt.Sprintf("%s.content.%d.name", at, i), "it is missing")
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

// user adds what the user said and what tools gave, in their order: each result is a message.
func (b *conversationBuilder) user(at, role string, list []contentBlock) error {
	said := &contents{}
	flush := func() {
		if !said.empty() {
			b.messages = append(b.messages, said.message(chat.Message{Role: role}))
		}
		said = &contents{}
	}
	for i, x := range list {
		if x.Type != toolResultBlock {
			if err := b.content(said, at, i, x); err != nil {
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

// result adds what a tool gave.
func (b *conversationBuilder) result(at string, x contentBlock) error {
	name, called := b.names[x.ToolUseID]
	if !called {
		return badParam(at+".tool_use_id", "no tool_use before it has the id %q", clip(x.ToolUseID))
	}
	var list contentBlocks
	if len(x.Content) > 0 {
		if err := json.Unmarshal(x.Content, &list); err != nil {
			return badParam(at+".content", "%v", err)
		}
	}
	var gave contents
	for i, y := range list {
		if err := b.content(&gave, at, i, y); err != nil {
			return err
		}
	}
	if gave.empty() && x.IsError {
		gave.text("error")
	}
	b.messages = append(b.messages, gave.message(chat.Message{Role: "tool", ToolCallID: x.ToolUseID, Name: name}))
	return nil
}

// content adds a text or a picture.
func (b *conversationBuilder) content(to *contents, at string, i int, x contentBlock) error {
	switch {
	case x.Type == textBlock:
		to.text(x.Text)
	case x.Type == documentBlock && x.Source != nil && x.Source.Type == "text":
		to.text(x.Source.Data)
	case x.Type == imageBlock && x.Source != nil && x.Source.Type == "base64":
		p, err := decodePicture(x.Source.Data, len(b.pictures))
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

// refuseBlock names a block that cannot be taken.
func refuseBlock(at string, i int, x contentBlock) error {
	at = fmt.Sprintf("%s.content.%d", at, i)
	switch {
	case x.Type != imageBlock && x.Type != documentBlock:
		return badParam(at+".type", "a block of type %q has no place here", clip(x.Type))
	case x.Source == nil:
		return badParam(at+".source", "it is missing")
	case x.Type == imageBlock:
		return badParam(at+".source", "a picture of type %q; pictures come as base64, nothing is fetched", clip(x.Source.Type))
	}
	return badParam(at+".source", "a document of type %q; documents come as text", clip(x.Source.Type))
}

// contents are texts and pictures in their order.
type contents struct {
	parts    []chat.Part
	last     strings.Builder // the text after those, each block of which begins a line
	texts    int             // blocks in it
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

// message is a message with them: in parts only where there are pictures, since not every template knows of parts.
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
